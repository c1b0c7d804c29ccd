(** * Sums in cells, and sums over all cells

    The first step for every query that is a description of sums: a unit is in one cell or in none. It adds numbers to
    the sums of its own cell, and further numbers to sums over all cells. *)

From Coq Require Import Reals QArith Qreals ZArith List Lia Lra.
From dpcausal Require Import Frame.
Import ListNotations.
Open Scope R_scope.

Section Cells.
Context {U P W : Type} (n : norm).

(** [numbers] are added up in each cell, [whole] over all cells. *)
Context (numbers : list (P * Q)) (whole : list (W * Q)).

Definition coordinate : Type := (nat * P) + W.
Definition all_coordinates (cells : nat) : list (coordinate * Q) :=
  map (fun c => (inl (fst c), snd c)) (by_cell numbers cells) ++ map (fun c => (inr (fst c), snd c)) whole.

(** What a unit adds, by its cell, its numbers and its numbers for the whole. *)
Definition adds (cell : U -> option nat) (x : U -> P -> Z) (a : U -> W -> Z) (u : U) (c : coordinate) : Z :=
  match c with inl (j, p) => in_cell (cell u) j (x u p) | inr w => a u w end.

(** How far the answer moves: [cell_change] for the cells, and the rest. *)
Definition unit_change (cell : U -> option nat) (x : U -> P -> Z) (a : U -> W -> Z) (u v : U) : R :=
  cell_change n numbers (cell u) (cell v) (x u) (x v) + moved n whole (fun w => IZR (a u w - a v w)).

Theorem cells_and_whole_move cells cell x a u v : positive_weights numbers ->
  moved n (all_coordinates cells) (fun c => IZR (adds cell x a u c - adds cell x a v c)) <= unit_change cell x a u v.
Proof.
  intros H. unfold all_coordinates, unit_change. rewrite moved_app, !moved_map.
  apply Rplus_le_compat; [|apply Rle_refl].
  erewrite moved_ext; [apply (by_cell_moves n numbers cells (cell u) (cell v) (x u) (x v) H)|].
  intros [j p]. reflexivity.
Qed.

(** The cases that bound an answer: a unit stays in its cell, goes to another one, leaves the comparison or enters it,
    or stays outside. However many cells there are, and whatever the other units are. *)
Theorem cells_bounded (may : U -> U -> Prop) cells cell x a b : positive_weights numbers ->
  (forall u v i, may u v -> cell u = Some i -> cell v = Some i ->
    moved n numbers (fun p => IZR (x u p - x v p)) + moved n whole (fun w => IZR (a u w - a v w)) <= most n b) ->
  (forall u v i j, may u v -> cell u = Some i -> cell v = Some j -> i <> j ->
    moved n numbers (fun p => IZR (x u p)) + moved n numbers (fun p => IZR (x v p))
      + moved n whole (fun w => IZR (a u w - a v w)) <= most n b) ->
  (forall u v i, may u v -> cell u = Some i -> cell v = None ->
    moved n numbers (fun p => IZR (x u p)) + moved n whole (fun w => IZR (a u w - a v w)) <= most n b) ->
  (forall u v i, may u v -> cell u = None -> cell v = Some i ->
    moved n numbers (fun p => IZR (x v p)) + moved n whole (fun w => IZR (a u w - a v w)) <= most n b) ->
  (forall u v, may u v -> cell u = None -> cell v = None -> moved n whole (fun w => IZR (a u w - a v w)) <= most n b) ->
  bounded may (answer (adds cell x a)) (Sensitivity n (all_coordinates cells) b).
Proof.
  intros H S M L E O. apply bounded_by_units. intros u v V. unfold within. cbn [in_norm coordinates bound].
  eapply Rle_trans; [now apply cells_and_whole_move|]. unfold unit_change, cell_change.
  destruct (cell u) as [i|] eqn:A, (cell v) as [j|] eqn:B.
  - destruct (Nat.eqb_spec i j); [subst; eapply S; eauto|eapply M; eauto].
  - eapply L; eauto.
  - eapply E; eauto.
  - rewrite Rplus_0_l. now apply O.
Qed.
End Cells.

(** ** Cells by several columns of codes *)

(** The place of a unit's cell, the last column running fastest; none if any code is outside its column's values. *)
Fixpoint place (codes : list (Z * nat)) (before : nat) : option nat :=
  match codes with
  | [] => Some before
  | (z, count) :: rest =>
      if (0 <=? z)%Z && (z <? Z.of_nat count)%Z then place rest (before * count + Z.to_nat z) else None
  end.

Definition inside (codes : list (Z * nat)) : Prop := Forall (fun c => (0 <= fst c < Z.of_nat (snd c))%Z) codes.

Lemma place_inside codes before i : place codes before = Some i -> inside codes.
Proof.
  revert before. induction codes as [|[z k] rest IH]; intros before E; [constructor|]. cbn [place] in E.
  destruct (Z.leb_spec 0 z), (Z.ltb_spec z (Z.of_nat k)); try discriminate. constructor; [cbn; lia|exact (IH _ E)].
Qed.

Fixpoint sizes (codes : list (Z * nat)) : nat := match codes with [] => 1 | c :: rest => snd c * sizes rest end.

Lemma place_value codes before i : place codes before = Some i ->
  (before * sizes codes <= i < (before + 1) * sizes codes)%nat.
Proof.
  revert before. induction codes as [|[z k] rest IH]; intros before E; cbn [place sizes snd] in *; [injection E as <-; lia|].
  destruct (Z.leb_spec 0 z), (Z.ltb_spec z (Z.of_nat k)); try discriminate. apply IH in E.
  assert (Z.to_nat z + 1 <= k)%nat by lia. nia.
Qed.

(** Units in one cell have the same codes. *)
Theorem place_injective a b before after i : map snd a = map snd b ->
  place a before = Some i -> place b after = Some i -> before = after /\ map fst a = map fst b.
Proof.
  revert b before after. induction a as [|[z k] a IH]; intros [|[y m] b] before after M A B; try discriminate.
  - cbn in *. split; congruence.
  - cbn [map snd fst] in *. injection M as -> M. cbn [place] in A, B.
    destruct (Z.leb_spec 0 z), (Z.ltb_spec z (Z.of_nat m)); try discriminate.
    destruct (Z.leb_spec 0 y), (Z.ltb_spec y (Z.of_nat m)); try discriminate. cbn [andb] in A, B.
    destruct (IH b _ _ M A B) as [E F].
    assert (Z.to_nat z < m /\ Z.to_nat y < m)%nat by lia.
    assert (before = after) by nia. subst after. split; [reflexivity|].
    assert (Z.to_nat z = Z.to_nat y) by nia. f_equal; [lia|exact F].
Qed.
