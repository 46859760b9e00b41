"""The chat template saved with a trained tokenizer: ChatML with compact Hermes calls, as ``toolbelt`` frames it.

It lets ``transformers`` and model servers render the same prompt ids. Journeyman itself never renders through it.
"""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{{- '<|im_start|>user\\n<tool_response>' + message.content + '</tool_response><|im_end|>\\n' -}}"
    "{%- else -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}"
    "{%- for call in message.tool_calls or [] -%}"
    "{%- set function = call.function if call.function is defined else call -%}"
    "{{- '<tool_call>{\"name\":' + function.name|tojson + ',\"arguments\":' -}}"
    "{{- function.arguments|tojson(separators=(',', ':')) + '}</tool_call>' -}}"
    "{%- endfor -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
