"""The text that starts a run on a cluster: a Slurm batch script or Kubernetes objects, printed and never submitted.

Promise: what is printed starts the run, lets it drain when the cluster takes the machines away (SIGTERM, then time to
finish the step and write a checkpoint), and starts it again where it stopped; every word of the user is quoted.

``TEXTS`` names the forms. Modules: ``spec`` (what is asked for), ``slurm``, ``k8s``, ``yaml`` (the few lines of YAML
that are needed).
"""
