(** * Counts: each unit adds to one count, or to none

    [docs/proofs/sums.md] proves the same for all sums. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame Moments.
Import ListNotations.
Open Scope R_scope.

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


(** ** Counts of covariates: each unit adds, for each covariate, to one bin of either level, or to those without a value *)

Inductive level := Coarse | Fine | Missing.

(** A place at a level of a covariate. *)
Notation covariate_coordinate := (nat * (nat * level))%type.

Definition of_level (size covariate : nat) (l : level) : list (covariate_coordinate * Q) :=
  map (fun k => ((k, (covariate, l)), 1%Q)) (seq 0 size).

Definition of_covariate (coarse fine covariate : nat) : list (covariate_coordinate * Q) :=
  of_level coarse covariate Coarse ++ of_level fine covariate Fine ++ of_level 1 covariate Missing.

Definition covariate_counts_sensitivity (covariates coarse fine : nat) (n : norm) : sensitivity covariate_coordinate :=
  let most_moved := inject_Z (4 * Z.of_nat covariates) in
  Sensitivity n (flat_map (of_covariate coarse fine) (seq 0 covariates))
    (match n with l1 => most_moved | l2 => root_above most_moved end).

(** Any public rule that gives each unit, by itself, a fine bin of each covariate or none. *)
Definition place {U : Type} (bin : U -> nat -> option nat) (wide : nat) (u : U) (covariate : nat) (l : level) : option nat :=
  match l with
  | Coarse => option_map (fun b => Nat.div b wide) (bin u covariate)
  | Fine => bin u covariate
  | Missing => match bin u covariate with Some _ => None | None => Some 0%nat end
  end.

Definition covariate_part {U : Type} (bin : U -> nat -> option nat) (wide : nat) (u : U) (c : covariate_coordinate) : Z :=
  in_cell (place bin wide u (fst (snd c)) (snd (snd c))) (fst c) 1.

Lemma one_change_of_counts n before after :
  one_change n before after 1 1 1%Q <=
    (match before with Some _ => 1 | None => 0 end) + (match after with Some _ => 1 | None => 0 end).
Proof.
  unfold one_change. destruct before as [i|], after as [k|]; try destruct (Nat.eqb i k);
    destruct n; open_cost; constants; lra.
Qed.

Lemma level_moves {U : Type} (bin : U -> nat -> option nat) wide n size covariate l u v :
  moved n (of_level size covariate l)
      (fun c => IZR (covariate_part bin wide u c - covariate_part bin wide v c)) <=
    (match place bin wide u covariate l with Some _ => 1 | None => 0 end) +
    (match place bin wide v covariate l with Some _ => 1 | None => 0 end).
Proof.
  unfold of_level. rewrite moved_cells_of_part. unfold covariate_part. cbn [fst snd].
  eapply Rle_trans; [apply one_change_total; [apply seq_NoDup|numbers; lra]|apply one_change_of_counts].
Qed.

Lemma covariate_moves {U : Type} (bin : U -> nat -> option nat) wide n coarse fine covariate u v :
  moved n (of_covariate coarse fine covariate)
    (fun c => IZR (covariate_part bin wide u c - covariate_part bin wide v c)) <= 4.
Proof.
  unfold of_covariate. rewrite !moved_app.
  pose proof (level_moves bin wide n coarse covariate Coarse u v).
  pose proof (level_moves bin wide n fine covariate Fine u v).
  pose proof (level_moves bin wide n 1 covariate Missing u v).
  cbn [place] in *. destruct (bin u covariate), (bin v covariate); cbn [option_map] in *; lra.
Qed.

Lemma all_covariates_move {U : Type} (bin : U -> nat -> option nat) wide n coarse fine covariates u v :
  moved n (flat_map (of_covariate coarse fine) covariates)
    (fun c => IZR (covariate_part bin wide u c - covariate_part bin wide v c)) <= IZR (4 * Z.of_nat (length covariates)).
Proof.
  induction covariates as [|j rest IH]; [cbn; lra|].
  cbn [flat_map length]. rewrite moved_app.
  pose proof (covariate_moves bin wide n coarse fine j u v).
  replace (4 * Z.of_nat (S (length rest)))%Z with (4 + 4 * Z.of_nat (length rest))%Z by lia.
  rewrite plus_IZR. lra.
Qed.

Theorem covariate_counts {U : Type} (bin : U -> nat -> option nat) wide covariates coarse fine n :
  bounded (fun _ _ => True) (answer (covariate_part bin wide)) (covariate_counts_sensitivity covariates coarse fine n).
Proof.
  apply bounded_by_units. intros u v _. unfold within, covariate_counts_sensitivity.
  cbn [in_norm coordinates bound].
  pose proof (all_covariates_move bin wide n coarse fine (seq 0 covariates) u v) as H.
  rewrite seq_length in H.
  assert (E : Q2R (inject_Z (4 * Z.of_nat covariates)) = IZR (4 * Z.of_nat covariates)).
  { unfold inject_Z, Q2R. cbn [Qnum Qden]. field. }
  destruct n; cbn [most].
  - rewrite E. exact H.
  - eapply Rle_trans; [exact H|]. rewrite <- E. apply root_above_square. rewrite E. apply IZR_le. lia.
Qed.
