"""One rank of megatron-core: tensor, pipeline, expert and context parallel layouts of dense and mixture Qwen3 models.

Promise: the weights come from and go to a Hugging Face directory, whatever the layout; the losses are ours and equal to
those of every other back-end. Gradients are summed and the optimizer is ours too, its moments on the GPU or in CPU
memory (``layout.offload``).

Runs on CPU processes (gloo) with the changes of ``model.prepare``; context and pipeline parallel need GPUs.
Modules: ``names`` (tensors from and to the checkpoint), ``model`` (building it), ``slices`` (its inputs),
``gradients`` (their sum), ``work`` (the verbs).
"""
