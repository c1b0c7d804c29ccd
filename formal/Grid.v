(** Written by [python -m checks.formal] from the Python code. Do not edit. *)

From Coq Require Import ZArith.

Definition grid : Z := 1048576.
Definition fine : Z := 1024.
