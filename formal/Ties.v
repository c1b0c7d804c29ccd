(** * The theorems are about the constants of the code

    [Constants.v] holds weights and bounds as the Python code computes them, for several schemas, every level of
    [protects] and both norms. Here each is compared with the formula that its theorem is about: weights are the same,
    and the bound of the code, which is computed from a description, is not below the proved one. *)

From Coq Require Import QArith ZArith List Bool.
From dpcausal Require Import Exported Constants Frame Moments Counts WeightedCounts Sums WeightedArms.
Import ListNotations.

Fixpoint same (a b : list Q) : bool :=
  match a, b with [], [] => true | x :: a', y :: b' => Qeq_bool x y && same a' b' | _, _ => false end.

Definition tied {C : Type} (formula : exported -> sensitivity C) (e : exported) : bool :=
  let s := formula e in same (map snd (coordinates s)) (all_weights e) && Qle_bool (bound s) (exported_bound e).

(** The parameter of an exported answer at a place, such as the number of cells. *)
Definition parameter (e : exported) (place : nat) : nat := nth place (parameters e) 0%nat.
Definition flag (e : exported) (place : nat) : bool := Nat.eqb (parameter e place) 1.

(** At least one answer was exported, and all have the formula's weights and no smaller bound. *)
Definition all_tied {C : Type} (formula : exported -> sensitivity C) (es : list exported) : bool :=
  negb (Nat.eqb (length es) 0) && forallb (tied formula) es.

Ltac tie := vm_compute; reflexivity.

Definition by_arm {C} (f : protects -> bool -> norm -> sensitivity C) (e : exported) := f (of_protects e) (leaves e) (of_norm e).
Definition by_cells {C} (f : nat -> norm -> sensitivity C) (e : exported) := f (parameter e 0) (of_norm e).
Definition by_moving_cells {C} (f : bool -> nat -> norm -> sensitivity C) (e : exported) :=
  f (flag e 0) (parameter e 1) (of_norm e).

Lemma arm_totals_tied : all_tied (by_arm arm_totals_sensitivity) exported_arm_totals = true. Proof. tie. Qed.
Lemma arm_moments_tied : all_tied (by_arm arm_moments_sensitivity) exported_arm_moments = true. Proof. tie. Qed.
Lemma change_moments_tied : all_tied (by_arm change_moments_sensitivity) exported_change_moments = true. Proof. tie. Qed.
Lemma cell_moments_tied : all_tied (by_moving_cells cell_moments_sensitivity) exported_cell_moments = true. Proof. tie. Qed.
Lemma subgroup_moments_tied : all_tied (by_moving_cells subgroup_moments_sensitivity) exported_subgroup_moments = true. Proof. tie. Qed.
Lemma cluster_moments_tied : all_tied (by_moving_cells cluster_moments_sensitivity) exported_cluster_moments = true. Proof. tie. Qed.
Lemma outcome_counts_tied : all_tied (by_cells outcome_counts_sensitivity) exported_outcome_counts = true. Proof. tie. Qed.
Lemma arm_outcome_counts_tied : all_tied (by_cells arm_outcome_counts_sensitivity) exported_arm_outcome_counts = true. Proof. tie. Qed.
Lemma missing_outcomes_tied : all_tied (by_cells missing_outcomes_sensitivity) exported_missing_outcomes = true. Proof. tie. Qed.
Lemma event_counts_tied : all_tied (by_cells event_counts_sensitivity) exported_event_counts = true. Proof. tie. Qed.
Lemma stratum_counts_tied : all_tied (by_cells stratum_counts_sensitivity) exported_stratum_counts = true. Proof. tie. Qed.
Lemma covariate_counts_tied :
  all_tied (fun e => covariate_counts_sensitivity (parameter e 0) (parameter e 1) (parameter e 2) (of_norm e))
    exported_covariate_counts = true.
Proof. tie. Qed.
Lemma score_counts_tied : all_tied (by_cells score_counts_sensitivity) exported_score_counts = true. Proof. tie. Qed.
Lemma weighted_counts_tied :
  all_tied (fun e => weighted_counts_sensitivity (of_protects e) (parameter e 0) (of_norm e)) exported_weighted_counts = true.
Proof. tie. Qed.
Lemma received_moments_tied : all_tied (by_arm received_moments_sensitivity) exported_received_moments = true. Proof. tie. Qed.
Lemma cutoff_moments_tied :
  all_tied (fun e => cutoff_moments_sensitivity (of_protects e) (of_norm e)) exported_cutoff_moments = true.
Proof. tie. Qed.
Lemma weighted_arms_tied :
  all_tied (fun e => weighted_arms_sensitivity (leaves e) (of_norm e)) exported_weighted_arms = true.
Proof. tie. Qed.
