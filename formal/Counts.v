(** * Counts: each unit adds to one count, or to none

    [docs/proofs/outcomes_below.md], [outcome_counts.md], [arm_counts.md] and [event_counts.md]. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame Moments.
Import ListNotations.
Open Scope R_scope.

(** ** Outcomes below a threshold *)

Definition outcomes_below_sensitivity (n : norm) : sensitivity Datatypes.unit := Sensitivity n [(tt, 1%Q)] 1%Q.

(** A unit in no declared arm or without an outcome has no [Z], and is on neither side. *)
Definition on_side (at_least : bool) (threshold : Z) (u : option Z) : bool :=
  match u with Some z => xorb at_least (z <? threshold)%Z | None => false end.

Theorem outcomes_below at_least threshold n :
  bounded (fun _ _ => True)
    (answer (fun u (_ : Datatypes.unit) => if on_side at_least threshold u then 1%Z else 0%Z))
    (outcomes_below_sensitivity n).
Proof.
  apply bounded_by_units. intros u v _. unfold within. cbn [in_norm coordinates bound outcomes_below_sensitivity moved].
  destruct n; cbn [most]; open_cost; destruct (on_side at_least threshold u), (on_side at_least threshold v);
    constants; lra.
Qed.

(** ** Counts of units *)

Inductive counted := Count.
Definition counts_sensitivity (cells : nat) (n : norm) : sensitivity (nat * counted) :=
  Sensitivity n (by_cell [(Count, 1%Q)] cells) (match n with l1 => 2 | l2 => root_above 2 end)%Q.

(** Any public rule that puts each unit, by itself, into one cell or into none. *)
Definition count_part {U : Type} (cell : U -> option nat) (u : U) (c : nat * counted) : Z := in_cell (cell u) (fst c) 1.

Theorem counts {U : Type} (cell : U -> option nat) cells n :
  bounded (fun _ _ => True) (answer (count_part cell)) (counts_sensitivity cells n).
Proof.
  apply bounded_by_units. intros u v _. unfold within. cbn [in_norm coordinates bound counts_sensitivity].
  eapply Rle_trans;
    [apply (by_cell_moves n [(Count, 1%Q)] cells (cell u) (cell v) (fun _ => 1%Z) (fun _ => 1%Z)); weights|].
  apply cell_change_within; [destruct n; cbn [most]; numbers; lra| |intros _; split];
    destruct n; cbn [moved most]; open_cost; constants; lra.
Qed.

(** In which interval between rising edges a number is. An edge belongs to the interval above it. *)
Definition interval (edges : list Z) (z : Z) : nat := length (filter (fun edge => (edge <=? z)%Z) edges).

(** Units outside the comparison have no arm, and count nowhere. *)
Definition outcome_counts_sensitivity := counts_sensitivity.
Theorem outcome_counts edges cells n :
  bounded (fun _ _ => True)
    (answer (count_part (fun u : option nat * Z => option_map (fun _ => interval edges (snd u)) (fst u))))
    (outcome_counts_sensitivity cells n).
Proof. apply counts. Qed.

Definition arm_outcome_counts_sensitivity := counts_sensitivity.
Theorem arm_outcome_counts edges cells n :
  bounded (fun _ _ => True)
    (answer (count_part (fun u : option nat * Z =>
      option_map (fun arm => (arm * S (length edges) + interval edges (snd u))%nat) (fst u))))
    (arm_outcome_counts_sensitivity cells n).
Proof. apply counts. Qed.

(** A unit has an arm or none, and an outcome or none; without one it counts too. *)
Definition missing_outcomes_sensitivity := counts_sensitivity.
Theorem missing_outcomes cells n :
  bounded (fun _ _ => True)
    (answer (count_part (fun u : option nat * option Z =>
      option_map (fun arm => (arm * 2 + match snd u with Some _ => 0 | None => 1 end)%nat) (fst u))))
    (missing_outcomes_sensitivity cells n).
Proof. apply counts. Qed.

(** A unit has a stratum, an arm or none, a time and a code of what ended follow-up. *)
Definition event_counts_sensitivity := counts_sensitivity.
Theorem event_counts times codes cells n :
  bounded (fun _ _ => True)
    (answer (count_part (fun u : nat * option nat * Z * nat => let '(stratum, arm, z, code) := u in
      let at_time := interval times z in let each := (length times * codes + 1)%nat in
      option_map (fun a => ((stratum * 2 + a) * each
        + if Nat.ltb at_time (length times) then at_time * codes + code else length times * codes)%nat) arm)))
    (event_counts_sensitivity cells n).
Proof. apply counts. Qed.

(** Strata are public, and so is the score's table. *)
Definition stratum_counts_sensitivity := counts_sensitivity.
Theorem stratum_counts {U : Type} (stratum : U -> nat) (arm : U -> option nat) cells n :
  bounded (fun _ _ => True) (answer (count_part (fun u => option_map (fun a => (stratum u * 2 + a)%nat) (arm u))))
    (stratum_counts_sensitivity cells n).
Proof. apply counts. Qed.

Definition score_counts_sensitivity := counts_sensitivity.
Theorem score_counts {U : Type} (score : U -> Z) edges (arm : U -> option nat) cells n :
  bounded (fun _ _ => True)
    (answer (count_part (fun u => option_map (fun a => (interval edges (score u) * 2 + a)%nat) (arm u))))
    (score_counts_sensitivity cells n).
Proof. apply counts. Qed.

