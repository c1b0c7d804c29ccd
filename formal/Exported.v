(** * What the code exports of an answer *)

From Coq Require Import QArith List.
From dpcausal Require Import Frame.
Import ListNotations.

(** The sensitivity of a query for one schema; equal weights in a row are counted. *)
Record exported := Exported {
  of_protects : protects;
  leaves : bool;  (** whether units may leave the comparison *)
  parameters : list nat;
  of_norm : norm;
  weights : list (nat * Q);
  exported_bound : Q }.

Definition all_weights (e : exported) : list Q := flat_map (fun w => repeat (snd w) (fst w)) (weights e).
