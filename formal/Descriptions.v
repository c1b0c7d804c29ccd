(** * Queries as descriptions, and what certificates prove of them

    A description is that of [sums/description.py]: cells, numbers that are added up in each cell, and numbers that are
    added up over all cells. [proved] is a computation. Where it says yes, the sums move by at most the bound between
    any neighbouring tables. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra Bool Arith.
From dpcausal Require Import Frame Cells Rounding Numbers Certificates.
Import ListNotations.
Open Scope R_scope.

Record description := Description {
  cells : list (number * nat);  (** factors, each with how many of its values are cells *)
  numbers : list (number * Q);  (** what a unit adds to its own cell, with the weight *)
  whole : list (number * Q) }.

(** A unit that is compared has columns; any other adds nothing. *)
Definition row := option Numbers.unit.

Definition codes (d : description) (u : Numbers.unit) : list (Z * nat) := map (fun c => (value u (fst c), snd c)) (cells d).
Definition cell (d : description) (r : row) : option nat := match r with Some u => place (codes d u) 0 | None => None end.
Definition row_value (r : row) (e : number) : Z := match r with Some u => value u e | None => 0%Z end.
Definition count (d : description) : nat := fold_right (fun c k => (snd c * k)%nat) 1%nat (cells d).

(** Which rows neighbours may differ by: columns are in their ranges, and those that are shared do not change. *)
Definition may (b : box) (leaves : bool) (r s : row) : Prop :=
  match r, s with
  | Some u, Some v => inside b u v
  | Some u, None | None, Some u => leaves = true /\ inside b u u
  | None, None => True
  end.

Definition sums_sensitivity (d : description) (n : norm) (bound : Q) : sensitivity (@coordinate number number) :=
  Sensitivity n (all_coordinates (numbers d) (whole d) (count d)) bound.

(** What a table's sums are. *)
Definition sums (d : description) : list row -> @coordinate number number -> Z :=
  answer (adds (cell d) (fun r e => row_value r e) (fun r e => row_value r e)).

(** ** Cases and their terms *)

Definition terms_of (k : kind) (es : list (number * Q)) : list (term * Q) := map (fun e => ((k, fst e), snd e)) es.

Definition stay_terms (d : description) := terms_of Change (numbers d) ++ terms_of Change (whole d).
Definition move_terms (d : description) := terms_of Own (numbers d) ++ terms_of Other (numbers d) ++ terms_of Change (whole d).
Definition drop_terms (d : description) := terms_of Own (numbers d) ++ terms_of Change (whole d).
Definition outside_terms (d : description) := terms_of Change (whole d).
Definition leave_terms (d : description) := terms_of Own (numbers d) ++ terms_of Own (whole d).
Definition absent_terms (d : description) := terms_of Own (whole d).

(** A certificate for each case. *)
Record certificates := Cases {
  stay : cert;  (** the unit stays in its cell *)
  move : cert;  (** from one cell to another *)
  drop : cert;  (** from a cell to none, and still compared *)
  outside : cert;  (** in no cell before and after *)
  leave : cert;  (** from a cell out of the comparison *)
  absent : cert }.  (** from no cell out of the comparison *)

Definition apart (r s : range) : bool := (high r <? low s)%Z || (high s <? low r)%Z.
Definition cells_of (count : nat) : range := Range 0 (Z.of_nat count - 1).

(** No unit of the box is in a cell. *)
Definition own_out (d : description) (b : box) : bool :=
  existsb (fun c => apart (of_own (reach b (fst c))) (cells_of (snd c))) (cells d).
Definition other_out (d : description) (b : box) : bool :=
  existsb (fun c => apart (of_other (reach b (fst c))) (cells_of (snd c))) (cells d).
(** No two units of the box are in the same cell. *)
Definition never_together (d : description) (b : box) : bool :=
  existsb (fun c => let r := reach b (fst c) in apart (of_own r) (of_other r)) (cells d).

Definition stay_impossible d b := own_out d b || never_together d b.
Definition move_impossible d b := own_out d b || other_out d b.
Definition never (b : box) : bool := false.

(** Columns by which cells are formed are shared by units in the same cell. *)
Definition set_shared (s : side) : side := Side (own s) (other s) true.
Definition same_cell (d : description) (b : box) : box :=
  fold_right (fun c b => match fst c with Column i => change_at set_shared b i | _ => b end) b (cells d).

Definition fixed (d : description) (b : box) : bool := forallb (fun c => is_zero (of_change (reach b (fst c)))) (cells d).
Definition always (d : description) (b : box) : bool :=
  forallb (fun c => let r := of_own (reach b (fst c)) in (0 <=? low r)%Z && (high r <? Z.of_nat (snd c))%Z) (cells d).
Definition none {A : Type} (l : list A) : bool := match l with [] => true | _ => false end.

(** Both units have the same ranges. *)
Definition symmetric (b : box) : bool :=
  forallb (fun s => (low (own s) =? low (other s))%Z && (high (own s) =? high (other s))%Z) b.

Definition proved (d : description) (b : box) (leaves : bool) (n : norm) (bound : Q) (c : certificates) : bool :=
  symmetric b && forallb (fun e => positive (snd e)) (numbers d ++ whole d) && Qle_bool 0 bound
  && proves n (stay_impossible d) (stay_terms d) (same_cell d b) bound (stay c)
  && (fixed d b || Nat.leb (count d) 1 || proves n (move_impossible d) (move_terms d) b bound (move c))
  && (fixed d b || always d b || proves n (own_out d) (drop_terms d) b bound (drop c))
  && (none (whole d) || always d b || proves n never (outside_terms d) b bound (outside c))
  && (negb leaves || proves n (own_out d) (leave_terms d) b bound (leave c))
  && (negb leaves || none (whole d) || always d b || proves n never (absent_terms d) b bound (absent c)).

(** ** Soundness *)

Lemma terms_moved n k es u v : all_moved n (terms_of k es) u v =
  moved n es (fun e => IZR (match k with Change => value u e - value v e | Own => value u e | Other => value v e end)).
Proof.
  unfold all_moved, terms_of. induction es as [|[e w] rest IH]; cbn [map moved fst snd]; [reflexivity|].
  rewrite IH. unfold moves. cbn [fst snd]. reflexivity.
Qed.

Lemma all_moved_app n a b u v : all_moved n (a ++ b) u v = all_moved n a u v + all_moved n b u v.
Proof. apply moved_app. Qed.

Lemma weighted_app a b : weighted a -> weighted b -> weighted (a ++ b).
Proof. intros A B. apply Forall_app. now split. Qed.

Lemma weighted_terms k es : forallb (fun e => positive (snd e)) es = true -> weighted (terms_of k es).
Proof.
  induction es as [|e rest IH]; cbn; intros H; [constructor|]. apply andb_prop in H as [A B].
  constructor; [exact A|now apply IH].
Qed.

Lemma positive_numbers (es : list (number * Q)) : forallb (fun e => positive (snd e)) es = true -> positive_weights es.
Proof.
  induction es as [|e rest IH]; cbn; intros H; [constructor|]. apply andb_prop in H as [A B].
  constructor; [now apply positive_weight|now apply IH].
Qed.

Lemma in_cells d u i : cell d (Some u) = Some i -> forall c, In c (cells d) -> (0 <= value u (fst c) < Z.of_nat (snd c))%Z.
Proof.
  intros C c I. apply place_inside in C. unfold Cells.inside, codes in C. rewrite Forall_forall in C.
  apply (C (value u (fst c), snd c)). apply in_map_iff. now exists c.
Qed.

Lemma apart_not r s z : apart r s = true -> within_range z r -> within_range z s -> False.
Proof.
  unfold apart, within_range. intros A R S. apply orb_prop in A as [A|A]; apply Z.ltb_lt in A; lia.
Qed.

Lemma own_out_right d b u v i : own_out d b = true -> inside b u v -> cell d (Some u) <> Some i.
Proof.
  intros O I C. apply existsb_exists in O as (c & J & A). destruct (reach_within b u v (fst c) I) as (R & _ & _).
  apply (apart_not _ _ _ A R). unfold within_range, cells_of. cbn [low high]. pose proof (in_cells d u i C c J). lia.
Qed.

Lemma other_out_right d b u v i : other_out d b = true -> inside b u v -> cell d (Some v) <> Some i.
Proof.
  intros O I C. apply existsb_exists in O as (c & J & A). destruct (reach_within b u v (fst c) I) as (_ & R & _).
  apply (apart_not _ _ _ A R). unfold within_range, cells_of. cbn [low high]. pose proof (in_cells d v i C c J). lia.
Qed.

Lemma same_codes d u v i : cell d (Some u) = Some i -> cell d (Some v) = Some i ->
  forall c, In c (cells d) -> value u (fst c) = value v (fst c).
Proof.
  unfold cell. intros A B. destruct (place_injective (codes d u) (codes d v) 0 0 i) as [_ E]; [|exact A|exact B|].
  - unfold codes. rewrite !map_map. reflexivity.
  - unfold codes in E. rewrite !map_map in E. cbn [fst] in E. revert E. generalize (cells d). induction l as [|c l IH]; [easy|].
    cbn [map]. intros E. injection E as E F. intros x [<-|X]; [exact E|now apply IH].
Qed.

Lemma never_together_right d b u v i : never_together d b = true -> inside b u v ->
  cell d (Some u) = Some i -> cell d (Some v) <> Some i.
Proof.
  intros O I C D. apply existsb_exists in O as (c & J & A). destruct (reach_within b u v (fst c) I) as (R & S & _).
  rewrite <- (same_codes d u v i C D c J) in S. exact (apart_not _ _ _ A R S).
Qed.

Lemma shared_inside b i u v : inside b u v -> u i = v i -> inside (change_at set_shared b i) u v.
Proof.
  intros I E j. destruct (I j) as (A & B & S). destruct (at_changed set_shared b i j) as [->|[-> ->]]; [auto|].
  cbn [set_shared own other shared]. auto.
Qed.

Lemma same_cell_inside d b u v : inside b u v -> (forall c, In c (cells d) -> value u (fst c) = value v (fst c)) ->
  inside (same_cell d b) u v.
Proof.
  intros I. unfold same_cell. generalize (cells d). induction l as [|[e k] l IH]; cbn [fold_right]; intros H; [exact I|].
  assert (J := IH (fun c C => H c (or_intror C))). specialize (H (e, k) (or_introl eq_refl)). cbn [fst] in *.
  destruct e; auto. now apply shared_inside.
Qed.

Lemma fixed_cell d b u v : fixed d b = true -> inside b u v -> cell d (Some u) = cell d (Some v).
Proof.
  intros F I. unfold cell. f_equal. unfold codes, fixed in *. revert F. generalize (cells d).
  induction l as [|c l IH]; cbn [forallb map]; intros F; [reflexivity|]. apply andb_prop in F as [F G].
  destruct (reach_within b u v (fst c) I) as (_ & _ & Z). apply (is_zero_zero _ _ F) in Z. f_equal; [|now apply IH].
  f_equal. lia.
Qed.

Lemma always_cell d b u v : always d b = true -> inside b u v -> cell d (Some u) <> None.
Proof.
  intros A I. unfold cell, codes, always in *. revert A. generalize (cells d) 0%nat.
  induction l as [|c l IH]; cbn [forallb map place]; intros k A; [easy|]. apply andb_prop in A as [A B].
  apply andb_prop in A as [L H]. apply Z.leb_le in L. apply Z.ltb_lt in H.
  destruct (reach_within b u v (fst c) I) as (R & _ & _). unfold within_range in R.
  destruct (Z.leb_spec 0 (value u (fst c))), (Z.ltb_spec (value u (fst c)) (Z.of_nat (snd c))); try lia.
  now apply IH.
Qed.

Lemma symmetric_inside b u v : symmetric b = true -> inside b u v -> inside b v u /\ inside b u u /\ inside b v v.
Proof.
  intros S I.
  assert (E : forall i, own (at_column b i) = other (at_column b i)).
  { intros i. unfold at_column, symmetric in *. clear I. revert i. induction b as [|s b IH]; intros [|i]; try reflexivity;
      cbn [forallb] in S; apply andb_prop in S as [A B].
    - apply andb_prop in A as [C D]. apply Z.eqb_eq in C, D. cbn [nth]. destruct s as [[] [] ?]. cbn in *. now subst.
    - cbn [nth]. now apply IH. }
  repeat split; try (destruct (I i) as (A & B & C)); try rewrite (E i) in *; unfold within_range in *; try lia;
    try (rewrite <- (E i) in *; lia); auto; intros; symmetry; auto.
Qed.

Lemma single_cell d u i : (count d <= 1)%nat -> cell d (Some u) = Some i -> i = 0%nat.
Proof.
  intros N C. apply place_value in C. assert (E : sizes (codes d u) = count d).
  { unfold codes, count. generalize (cells d). induction l as [|c l IH]; cbn; [reflexivity|]. now rewrite IH. }
  rewrite E in C. nia.
Qed.

Ltac conjuncts := repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H as [? ?] end.

Lemma moved_back n (es : list (number * Q)) u v :
  moved n es (fun e => IZR (value u e - value v e)) = moved n es (fun e => IZR (value v e - value u e)).
Proof. rewrite <- moved_opp. apply moved_ext. intros e. rewrite <- opp_IZR. f_equal. ring. Qed.

Theorem proved_bounds d b leaves n bound c : proved d b leaves n bound c = true ->
  bounded (may b leaves) (sums d) (sums_sensitivity d n bound).
Proof.
  intros P. unfold proved in P. apply andb_prop in P as [P AB]. apply andb_prop in P as [P LE].
  apply andb_prop in P as [P OU]. apply andb_prop in P as [P DR]. apply andb_prop in P as [P MO].
  apply andb_prop in P as [P ST]. apply andb_prop in P as [P B0]. apply andb_prop in P as [SY W].
  rewrite forallb_app in W. apply andb_prop in W as [WN WW].
  assert (MB : 0 <= most n bound).
  { apply Qle_bool_iff, Qle_Rle in B0. unfold Q2R in B0 at 1. cbn in B0. destruct n; cbn [most]; [lra|apply pow2_ge_0]. }
  assert (W0 : forall k, weighted (terms_of k (numbers d))) by (intros; now apply weighted_terms).
  assert (W1 : forall k, weighted (terms_of k (whole d))) by (intros; now apply weighted_terms).
  (* Each case for units that are compared. *)
  assert (Stay : forall u v i, inside b u v -> cell d (Some u) = Some i -> cell d (Some v) = Some i ->
    all_moved n (stay_terms d) u v <= most n bound).
  { intros u v i I C D.
    apply (proves_bounds n (stay_impossible d) (fun u v => cell d (Some u) = Some i /\ cell d (Some v) = Some i)
      (stay_terms d) (same_cell d b) bound (stay c)); [now apply weighted_app| |now split| |exact ST].
    - intros e X J [Y Z]. apply orb_prop in X as [X|X]; [exact (own_out_right d e u v i X J Y)|].
      exact (never_together_right d e u v i X J Y Z).
    - apply same_cell_inside; [exact I|]. exact (same_codes d u v i C D). }
  assert (Move : forall u v i j, inside b u v -> cell d (Some u) = Some i -> cell d (Some v) = Some j -> i <> j ->
    all_moved n (move_terms d) u v <= most n bound).
  { intros u v i j I C D N. apply orb_prop in MO as [MO|MO]; [apply orb_prop in MO as [MO|MO]|].
    - pose proof (fixed_cell d b u v MO I). congruence.
    - apply Nat.leb_le in MO. apply (single_cell d u i MO) in C. apply (single_cell d v j MO) in D. congruence.
    - apply (proves_bounds n (move_impossible d) (fun u v => cell d (Some u) = Some i /\ cell d (Some v) = Some j)
        (move_terms d) b bound (move c)); [repeat apply weighted_app; auto| |now split|exact I|exact MO].
      intros e X J [Y Z]. apply orb_prop in X as [X|X]; [exact (own_out_right d e u v i X J Y)|].
      exact (other_out_right d e u v j X J Z). }
  assert (Drop : forall u v i, inside b u v -> cell d (Some u) = Some i -> cell d (Some v) = None ->
    all_moved n (drop_terms d) u v <= most n bound).
  { intros u v i I C D. apply orb_prop in DR as [DR|DR]; [apply orb_prop in DR as [DR|DR]|].
    - pose proof (fixed_cell d b u v DR I). congruence.
    - destruct (symmetric_inside b u v SY I) as (J & _). exfalso. exact (always_cell d b v u DR J D).
    - apply (proves_bounds n (own_out d) (fun u v => cell d (Some u) = Some i) (drop_terms d) b bound (drop c));
        [now apply weighted_app| |exact C|exact I|exact DR].
      intros e X J Y. exact (own_out_right d e u v i X J Y). }
  assert (Outside : forall u v, inside b u v -> cell d (Some u) = None ->
    all_moved n (outside_terms d) u v <= most n bound).
  { intros u v I C. apply orb_prop in OU as [OU|OU]; [apply orb_prop in OU as [OU|OU]|].
    - unfold outside_terms. destruct (whole d); [exact MB|discriminate].
    - exfalso. exact (always_cell d b u v OU I C).
    - apply (proves_bounds n never (fun _ _ => True) (outside_terms d) b bound (outside c));
        [apply W1|intros e X; discriminate X|exact Logic.I|exact I|exact OU]. }
  assert (Leave : forall u i, leaves = true -> inside b u u -> cell d (Some u) = Some i ->
    all_moved n (leave_terms d) u u <= most n bound).
  { intros u i L I C. rewrite L in LE. cbn in LE.
    apply (proves_bounds n (own_out d) (fun u v => cell d (Some u) = Some i) (leave_terms d) b bound (leave c));
      [now apply weighted_app| |exact C|exact I|exact LE].
    intros e X J Y. exact (own_out_right d e u u i X J Y). }
  assert (Absent : forall u, leaves = true -> inside b u u -> cell d (Some u) = None ->
    all_moved n (absent_terms d) u u <= most n bound).
  { intros u L I C. rewrite L in AB. cbn in AB. apply orb_prop in AB as [AB|AB]; [apply orb_prop in AB as [AB|AB]|].
    - unfold absent_terms. destruct (whole d); [exact MB|discriminate].
    - exfalso. exact (always_cell d b u u AB I C).
    - apply (proves_bounds n never (fun _ _ => True) (absent_terms d) b bound (absent c));
        [apply W1|intros e X; discriminate X|exact Logic.I|exact I|exact AB]. }
  unfold stay_terms, move_terms, drop_terms, outside_terms, leave_terms, absent_terms in *.
  (* And for all rows. *)
  unfold sums, sums_sensitivity. apply cells_bounded; [now apply positive_numbers|..].
  - intros [u|] [v|] i M C D; try discriminate. cbn [row_value may] in *.
    specialize (Stay u v i M C D). rewrite all_moved_app, !terms_moved in Stay. exact Stay.
  - intros [u|] [v|] i j M C D N; try discriminate. cbn [row_value may] in *.
    specialize (Move u v i j M C D N). rewrite !all_moved_app, !terms_moved in Move. lra.
  - intros [u|] [v|] i M C D; try discriminate; cbn [row_value may] in *.
    + specialize (Drop u v i M C D). rewrite all_moved_app, !terms_moved in Drop. exact Drop.
    + destruct M as [L I]. specialize (Leave u i L I C). rewrite all_moved_app, !terms_moved in Leave.
      eapply Rle_trans; [|exact Leave]. right. f_equal. apply moved_ext. intros e. f_equal. ring.
  - intros [u|] [v|] i M C D; try discriminate; cbn [row_value may] in *.
    + destruct (symmetric_inside b u v SY M) as (M' & _). specialize (Drop v u i M' D C).
      rewrite all_moved_app, !terms_moved in Drop. rewrite moved_back. exact Drop.
    + destruct M as [L I]. specialize (Leave v i L I D). rewrite all_moved_app, !terms_moved in Leave.
      eapply Rle_trans; [|exact Leave]. right. f_equal. rewrite <- moved_opp. apply moved_ext. intros e.
      rewrite <- opp_IZR. f_equal. ring.
  - intros [u|] [v|] M C D; cbn [row_value may] in *.
    + specialize (Outside u v M C). rewrite terms_moved in Outside. exact Outside.
    + destruct M as [L I]. specialize (Absent u L I C). rewrite terms_moved in Absent.
      eapply Rle_trans; [|exact Absent]. right. apply moved_ext. intros e. f_equal. ring.
    + destruct M as [L I]. specialize (Absent v L I D). rewrite terms_moved in Absent.
      eapply Rle_trans; [|exact Absent]. right. rewrite <- moved_opp. apply moved_ext. intros e.
      rewrite <- opp_IZR. f_equal. ring.
    + rewrite moved_0; [exact MB|]. intros e. reflexivity.
Qed.

(** ** Claims of the code *)

(** A description, the ranges of its columns and which of them are shared, whether units may leave the comparison, and
    the bound that the code claims. *)
Record claim := Claim { described : description; columns : box; may_leave : bool; claim_norm : norm; claimed : Q }.

Definition true_claim (c : claim) : Prop :=
  bounded (may (columns c) (may_leave c)) (sums (described c)) (sums_sensitivity (described c) (claim_norm c) (claimed c)).

Definition check (c : claim) (cs : certificates) : bool :=
  proved (described c) (columns c) (may_leave c) (claim_norm c) (claimed c) cs.

Theorem certified c cs : check c cs = true -> true_claim c.
Proof. apply proved_bounds. Qed.
