(** * Totals, deficits and sizes in arms and cells

    [docs/proofs/sums.md] proves the same for all sums. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Psatz Bool.
From dpcausal Require Import Grid Frame.
Import ListNotations.
Open Scope R_scope.

(** Ticks from the middle of a range to its bounds. *)
Notation G := grid.

(** What a square lacks to the largest, in ticks, rounded down. *)
Definition deficit (z : Z) : Z := ((G * G - z * z) / G)%Z.

Definition on_grid (z : Z) : Prop := (- G <= z <= G)%Z.

(** A unit as the door gives it to these queries: its cell (an arm, or an arm of a stratum), or none, and a number on
    the grid. *)
Record unit := Unit { cell : option nat; number : Z }.

(** Which replacements neighbours may differ by. Where cells are public a unit stays in its cell. *)
Definition may (moves : bool) (u v : unit) : Prop :=
  on_grid (number u) /\ on_grid (number v) /\ (moves = false -> cell u = cell v).

Lemma cost_abs n x w : cost n x w = match n with l1 => Rabs x / Q2R w | l2 => (Rabs x / Q2R w) ^ 2 end.
Proof. destruct n; [reflexivity|]. cbn [cost]. unfold Rdiv. rewrite !Rpow_mult_distr, pow2_abs. reflexivity. Qed.

Lemma deficit_spec z : on_grid z ->
  0 <= IZR (deficit z) /\ IZR G * IZR (deficit z) <= IZR G ^ 2 - IZR z ^ 2 < IZR G * IZR (deficit z) + IZR G.
Proof.
  unfold on_grid, deficit, grid. intros H. set (m := (1048576 * 1048576 - z * z)%Z).
  assert (Hm : (0 <= m)%Z) by (unfold m; nia).
  assert (D := Z_div_mod_eq_full m 1048576). assert (R := Z.mod_pos_bound m 1048576 ltac:(lia)).
  assert (Q := Z.div_pos m 1048576 Hm ltac:(lia)). set (q := (m / 1048576)%Z) in *.
  assert (L : (1048576 * q <= m)%Z) by lia. assert (U : (m < 1048576 * q + 1048576)%Z) by lia.
  unfold m in L, U. apply IZR_le in L, Q. apply IZR_lt in U.
  rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR in L. rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR in U. nra.
Qed.

Lemma on_grid_real z : on_grid z -> - IZR G <= IZR z <= IZR G.
Proof. unfold on_grid. intros [A B]. apply IZR_le in A, B. rewrite opp_IZR in A. lra. Qed.

(** A number that moves from one place to another: x is its move as a share of the range. *)
Lemma stays z y : on_grid z -> on_grid y -> exists x d e, 0 <= x <= 1 /\
  Rabs (IZR (z - y)) = 2 * IZR G * x /\
  Rabs (IZR (deficit z - deficit y)) = IZR G * d /\ 0 <= d <= 4 * x * (1 - x) + / IZR G /\
  Rabs (IZR (z + y)) = 2 * IZR G * e /\ 0 <= e <= 1 - x.
Proof.
  intros Hz Hy. destruct (deficit_spec z Hz) as [_ Dz]. destruct (deficit_spec y Hy) as [_ Dy].
  apply on_grid_real in Hz, Hy. rewrite !minus_IZR, plus_IZR.
  set (a := IZR z) in *. set (b := IZR y) in *. set (p := IZR (deficit z)) in *. set (q := IZR (deficit y)) in *.
  unfold grid in *.
  exists (Rabs (a - b) / 2097152), (Rabs (p - q) / 1048576), (Rabs (a + b) / 2097152).
  assert (A := Rabs_pos (a - b)). assert (B := Rabs_pos (a + b)). assert (C := Rabs_pos (p - q)).
  assert (S : Rabs (a + b) + Rabs (a - b) <= 2097152) by (unfold Rabs; destruct (Rcase_abs (a + b)), (Rcase_abs (a - b)); lra).
  repeat split; try lra.
  assert (T : Rabs (a ^ 2 - b ^ 2) = Rabs (a - b) * Rabs (a + b)) by (rewrite <- Rabs_mult; f_equal; ring).
  assert (U : 1048576 * Rabs (p - q) <= Rabs (a ^ 2 - b ^ 2) + 1048576).
  { revert Dz Dy. clear. unfold Rabs. destruct (Rcase_abs (p - q)), (Rcase_abs (a ^ 2 - b ^ 2)); lra. }
  rewrite T in U. clear - U A B S. set (s := Rabs (a - b)) in *. set (t := Rabs (a + b)) in *.
  assert (s * t <= s * (2097152 - s)) by nra. lra.
Qed.

(** A number that enters a cell or leaves it. *)
Lemma joins z : on_grid z -> exists x d, 0 <= x <= 1 /\
  Rabs (IZR z) = IZR G * x /\ Rabs (IZR (deficit z)) = IZR G * d /\ 0 <= d <= 1 - x ^ 2.
Proof.
  intros Hz. destruct (deficit_spec z Hz) as [P D]. apply on_grid_real in Hz.
  exists (Rabs (IZR z) / IZR G), (IZR (deficit z) / IZR G). rewrite (Rabs_pos_eq _ P).
  assert (E : IZR z ^ 2 = Rabs (IZR z) ^ 2) by now rewrite pow2_abs.
  rewrite E in D. clear E. assert (A := Rabs_pos (IZR z)).
  assert (B : Rabs (IZR z) <= IZR G) by (apply Rabs_le; lra).
  set (a := Rabs (IZR z)) in *. set (q := IZR (deficit z)) in *. unfold grid in *.
  repeat split; nra.
Qed.

Inductive part := Total | Deficit | Size.
Definition value (u : unit) (p : part) : Z :=
  match p with Total => number u | Deficit => deficit (number u) | Size => 1%Z end.

Definition Zq (z : Z) : Q := inject_Z z.
Lemma Q2R_Zq z : Q2R (Zq z) = IZR z.
Proof. unfold Zq, inject_Z, Q2R. cbn [Qnum Qden]. field. Qed.

Ltac weights := unfold positive_weights;
  match goal with |- Forall ?P ?l => let m := eval vm_compute in l in change (Forall P m) end;
  repeat (apply Forall_cons; [cbn [snd]; numbers; lra|]); apply Forall_nil.
Lemma stays_l1 x d : 0 <= x <= 1 -> 0 <= d <= 4 * x * (1 - x) + / 1048576 -> x + d / 4 <= 1 + / 4194304.
Proof. intros. nra. Qed.
Lemma stays_l2 x d : 0 <= x <= 1 -> 0 <= d <= 4 * x * (1 - x) + / 1048576 -> x ^ 2 + (d / 2) ^ 2 <= (1 + / 2097152) ^ 2.
Proof.
  intros X D. assert (d / 2 <= 2 * x * (1 - x) + / 2097152) by lra.
  assert ((d / 2) ^ 2 <= (2 * x * (1 - x) + / 2097152) ^ 2) by (apply pow_incr; lra).
  assert (x ^ 2 + (2 * x * (1 - x)) ^ 2 <= 1).
  { assert (0 <= (1 - x) * (x * (1 - 2 * x) ^ 2 + 1)) by (apply Rmult_le_pos; [lra|]; assert (0 <= x * (1 - 2 * x) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]); lra).
    nra. }
  nra.
Qed.
Lemma joins_l1 y c : 0 <= y <= 1 -> 0 <= c <= 1 - y ^ 2 -> y / 2 + c / 4 <= / 2.
Proof. intros. nra. Qed.
Lemma joins_l2 y c : 0 <= y <= 1 -> 0 <= c <= 1 - y ^ 2 -> (y / 2) ^ 2 + (c / 2) ^ 2 <= / 4.
Proof. intros. nra. Qed.

Ltac use_stays u v := let H := fresh in let H' := fresh in let x := fresh "x" in let d := fresh "d" in
  let X := fresh "X" in let D := fresh "D" in
  destruct (stays (number u) (number v)) as (x & d & ? & X & H & H' & D & _); [assumption..|];
  rewrite ?H, ?H'; clear H H'; unfold grid in D; pose proof (stays_l1 x d X D); pose proof (stays_l2 x d X D).
Ltac use_joins u := let H := fresh in let H' := fresh in let y := fresh "y" in let c := fresh "c" in
  let Y := fresh "Y" in let C := fresh "C" in
  destruct (joins (number u)) as (y & c & Y & H & H' & C); [assumption|]; rewrite ?H, ?H'; clear H H';
  pose proof (joins_l1 y c Y C); pose proof (joins_l2 y c Y C).
Ltac open_cost := rewrite ?cost_abs; cbn [cost value]; rewrite ?Q2R_Zq, ?mult_IZR; numbers.

Ltac constants :=
  change (0 - 0)%Z with 0%Z; change (0 - 1)%Z with (-1)%Z; change (1 - 0)%Z with 1%Z; change (1 - 1)%Z with 0%Z;
  rewrite ?Rabs_R0, ?Rabs_R1, ?(Rabs_left (-1)) by lra.

(** ** Arm totals and arm moments *)

Inductive extra := Treated | Compared.
Definition arm_coordinate : Type := (nat * part) + extra.

(** What a unit adds: to its arm's sums, to the size of arm 1 and to the number of units in both arms. *)
Definition arm_part (u : unit) (c : arm_coordinate) : Z :=
  match c with
  | inl (j, p) => in_cell (cell u) j (value u p)
  | inr Treated => in_cell (cell u) 1 1
  | inr Compared => match cell u with Some _ => 1 | None => 0 end
  end.

Definition in_arms (cs : list ((nat * part) * Q)) : list (arm_coordinate * Q) := map (fun c => (inl (fst c), snd c)) cs.

Definition sizes (p : protects) (leaves : bool) (treated compared : Q) : list (arm_coordinate * Q) :=
  match p with
  | record => (inr Treated, treated) :: if leaves then [(inr Compared, compared)] else []
  | _ => []
  end.

Definition total_parts : list (part * Q) := [(Total, Zq (2 * G))].
Definition moment_parts (n : norm) : list (part * Q) :=
  [(Total, Zq (2 * G)); (Deficit, Zq (match n with l1 => 4 | l2 => 2 end * G))].
Definition arm_size_weight (n : norm) : Q := match n with l1 => 2 | l2 => 3 # 2 end.

Definition arm_totals_sensitivity (p : protects) (leaves : bool) (n : norm) : sensitivity arm_coordinate :=
  Sensitivity n (in_arms (by_part total_parts 2) ++ sizes p leaves (arm_size_weight n) 2)
    (match p, n with record, l1 => 3 # 2 | _, _ => 1 end).

Definition arm_moments_sensitivity (p : protects) (leaves : bool) (n : norm) : sensitivity arm_coordinate :=
  Sensitivity n (in_arms (by_part (moment_parts n) 2) ++ sizes p leaves (arm_size_weight n) 2)
    (match p, n with record, l1 => 3 # 2 | _, l1 => 1 + / Zq (4 * G) | _, l2 => 1 + / Zq (2 * G) end).

(** A unit's arm is 0, 1 or none. *)
Definition arms (moves : bool) (u v : unit) : Prop :=
  may moves u v /\ (cell u = None \/ cell u = Some 0%nat \/ cell u = Some 1%nat)
  /\ (cell v = None \/ cell v = Some 0%nat \/ cell v = Some 1%nat).

Definition arms_move (p : protects) : bool := match p with record => true | _ => false end.

Lemma in_arms_moves n cs u v : moved n (in_arms cs) (fun c => IZR (arm_part u c - arm_part v c)) =
  moved n cs (cell_difference (cell u) (cell v) (value u) (value v)).
Proof.
  unfold in_arms. rewrite (moved_map n (fun c => inl c : arm_coordinate) cs).
  apply moved_ext. intros [j p]. reflexivity.
Qed.



(** Split by arms, and turn the moves of all cases into numbers. *)
Ltac arm_cases parts u v Hu Hv S Cu Cv p n leaves := unfold within;
  cbn [in_norm coordinates bound]; rewrite moved_app, in_arms_moves;
  eapply Rle_trans; [apply Rplus_le_compat_r;
    apply (by_part_moves n parts 2 (cell u) (cell v) (value u) (value v)); destruct n; weights|];
  destruct p; cbn [arms_move] in S; cbn [sizes moved]; try (specialize (S eq_refl); rewrite <- S; rewrite Rplus_0_r);
  unfold cell_change, total_parts, moment_parts;
  [destruct Cu as [Cu|[Cu|Cu]], Cv as [Cv|[Cv|Cv]]; unfold arm_part; rewrite Cu, Cv; cbn [in_cell Nat.eqb];
     destruct leaves | destruct (cell u) as [i|]; [rewrite Nat.eqb_refl|] ..];
  destruct n; cbn [moved most arm_size_weight]; open_cost; constants;
  
  lazymatch goal with |- context [(number u - number v)%Z] => use_stays u v | _ => idtac end;
  try match goal with |- context [IZR (number u)] => use_joins u end;
  try match goal with |- context [IZR (number v)] => use_joins v end; unfold grid in *.

Theorem arm_totals p leaves n : bounded (arms (arms_move p)) (answer arm_part) (arm_totals_sensitivity p leaves n).
Proof.
  apply bounded_by_units. intros u v ((Hu & Hv & S) & Cu & Cv). unfold arm_totals_sensitivity.
  arm_cases total_parts u v Hu Hv S Cu Cv p n leaves; nra.
Qed.

Theorem arm_moments p leaves n : bounded (arms (arms_move p)) (answer arm_part) (arm_moments_sensitivity p leaves n).
Proof.
  apply bounded_by_units. intros u v ((Hu & Hv & S) & Cu & Cv). unfold arm_moments_sensitivity.
  arm_cases (moment_parts n) u v Hu Hv S Cu Cv p n leaves.
  all: lra.
Qed.

(** ** Change moments: the same sums of a change that is kept within the grid

    The answer clips a change of two columns, with public integer factors, and rounds it down. *)

Definition change (a b o fine after before : Z) : Z :=
  (Z.min (Z.max (a * after - b * before + o) (- (G * fine))) (G * fine) / fine)%Z.

Lemma change_on_grid a b o fine after before : (0 < fine)%Z -> on_grid (change a b o fine after before).
Proof.
  intros F. unfold on_grid, change. set (m := Z.min _ _).
  assert (L : (- (G * fine) <= m <= G * fine)%Z) by (unfold m, grid; nia).
  split; [apply Z.div_le_lower_bound|apply Z.div_le_upper_bound]; lia.
Qed.

Definition change_moments_sensitivity := arm_moments_sensitivity.

Theorem change_moments (U : Type) (arm : U -> option nat) (after before : U -> Z) a b o fine p leaves n :
  (0 < fine)%Z ->
  bounded (fun u v => (arms_move p = false -> arm u = arm v) /\
      (arm u = None \/ arm u = Some 0%nat \/ arm u = Some 1%nat) /\
      (arm v = None \/ arm v = Some 0%nat \/ arm v = Some 1%nat))
    (answer (fun u => arm_part (Unit (arm u) (change a b o fine (after u) (before u)))))
    (change_moments_sensitivity p leaves n).
Proof.
  intros F. apply bounded_by_units. intros u v (S & Cu & Cv).
  set (u' := Unit (arm u) (change a b o fine (after u) (before u))).
  set (v' := Unit (arm v) (change a b o fine (after v) (before v))).
  assert (B := arm_moments p leaves n [u'] [v']).
  assert (N : neighbours (arms (arms_move p)) [u'] [v']).
  { apply (replaced _ [] u' v' []). repeat split; try apply change_on_grid; auto. }
  specialize (B N). unfold within in *. erewrite moved_ext; [exact B|].
  intros c. simpl. now rewrite !Z.add_0_r.
Qed.

(** ** Cell moments *)

Definition cell_parts (moves : bool) (n : norm) : list (part * Q) :=
  moment_parts n ++ [(Size, (if moves then match n with l1 => 4 | l2 => 2 end else 1)%Q)].

Definition subgroup_parts (n : norm) : list (part * Q) :=
  [(Size, (match n with l1 => 2 | l2 => 1 end)%Q); (Total, Zq G); (Deficit, Zq (match n with l1 => 2 | l2 => 1 end * G))].

Definition cell_moments_sensitivity (moves : bool) (cells : nat) (n : norm) : sensitivity (nat * part) :=
  Sensitivity n (by_cell (cell_parts moves n) cells)
    (match n with l1 => if moves then 3 # 2 else 1 + / Zq (4 * G) | l2 => 1 + / Zq (2 * G) end)%Q.

Definition cell_part (u : unit) (c : nat * part) : Z := in_cell (cell u) (fst c) (value u (snd c)).

Ltac cell_cases parts u v S n := unfold within; cbn [in_norm coordinates bound];
  eapply Rle_trans; [apply (by_cell_moves n parts _ (cell u) (cell v) (value u) (value v)); destruct n; weights|];
  apply cell_change_within; [destruct n; cbn [most]; numbers; lra| |intros D; try (specialize (S eq_refl); contradiction); split];
  destruct n; unfold cell_parts, moment_parts, subgroup_parts; cbn [app moved most]; open_cost; constants;
  lazymatch goal with |- context [(number u - number v)%Z] => use_stays u v | _ => idtac end;
  try match goal with |- context [IZR (number u)] => use_joins u end;
  try match goal with |- context [IZR (number v)] => use_joins v end; unfold grid in *.

Theorem cell_moments moves cells n :
  bounded (may moves) (answer cell_part) (cell_moments_sensitivity moves cells n).
Proof.
  apply bounded_by_units. intros u v (Hu & Hv & S). unfold cell_moments_sensitivity.
  destruct moves; [cell_cases (cell_parts true n) u v S n|cell_cases (cell_parts false n) u v S n]; lra.
Qed.

(** ** Subgroup moments and cluster moments *)

Definition subgroup_moments_sensitivity (moves : bool) (cells : nat) (n : norm) : sensitivity (nat * part) :=
  Sensitivity n (by_cell (subgroup_parts n) cells) ((if moves then match n with l1 => 3 | l2 => 2 end else 2) + / Zq G + / Zq G)%Q.

Theorem subgroup_moments moves cells n :
  bounded (may moves) (answer cell_part) (subgroup_moments_sensitivity moves cells n).
Proof.
  apply bounded_by_units. intros u v (Hu & Hv & S). unfold subgroup_moments_sensitivity.
  destruct moves; cell_cases (subgroup_parts n) u v S n; lra.
Qed.

Definition cluster_moments_sensitivity := subgroup_moments_sensitivity.

Theorem cluster_moments moves cells n :
  bounded (may moves) (answer cell_part) (cluster_moments_sensitivity moves cells n).
Proof. apply subgroup_moments. Qed.
