(** * Numbers of a unit, and their ranges over boxes of two units

    The tree of [sums/numbers.py]: whole numbers made of a unit's columns. Over a box for the columns of two units, a
    number has three ranges: of the one unit, of the other, and of the change between them. All are whole numbers, so
    the arithmetic is exact. *)

From Coq Require Import ZArith List Lia Bool.
From dpcausal Require Import Rounding.
Import ListNotations.
Open Scope Z_scope.

Inductive number :=
  | Column (place : nat)  (** ticks or a code *)
  | Constant (value : Z)
  | Plus (a b : number)
  | Times (a b : number)
  | Shift (a : number) (bits : positive)
  | Clip (a : number) (least most : Z)
  | Where (condition : number) (least most : Z) (a : number)  (** [a] where the condition's number is between *)
  | Lookup (a : number) (values : list Z).

Definition unit := nat -> Z.

Fixpoint value (u : unit) (e : number) : Z :=
  match e with
  | Column i => u i
  | Constant z => z
  | Plus a b => value u a + value u b
  | Times a b => value u a * value u b
  | Shift a bits => value u a / 2 ^ Zpos bits
  | Clip a least most => clip least most (value u a)
  | Where c least most a => if (least <=? value u c) && (value u c <=? most) then value u a else 0
  | Lookup a values => nth (Z.to_nat (value u a)) values 0
  end.

Fixpoint same_list (a b : list Z) : bool :=
  match a, b with [], [] => true | x :: a', y :: b' => (x =? y) && same_list a' b' | _, _ => false end.

Lemma same_list_equal a b : same_list a b = true -> a = b.
Proof.
  revert b. induction a as [|x a IH]; intros [|y b] E; try discriminate; [reflexivity|].
  apply andb_prop in E as [E F]. apply Z.eqb_eq in E. f_equal; auto.
Qed.

Fixpoint same_number (a b : number) : bool :=
  match a, b with
  | Column i, Column j => Nat.eqb i j
  | Constant x, Constant y => x =? y
  | Plus a b, Plus c d | Times a b, Times c d => same_number a c && same_number b d
  | Shift a k, Shift b l => Pos.eqb k l && same_number a b
  | Clip a l h, Clip b m i => (l =? m) && (h =? i) && same_number a b
  | Where c l h a, Where d m i b => (l =? m) && (h =? i) && same_number c d && same_number a b
  | Lookup a x, Lookup b y => same_list x y && same_number a b
  | _, _ => false
  end.

Lemma same_number_equal a b : same_number a b = true -> a = b.
Proof.
  revert b. induction a; intros [] E; try discriminate; cbn [same_number] in E;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H as [? ?] end;
    repeat match goal with
      | H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H
      | H : Pos.eqb _ _ = true |- _ => apply Pos.eqb_eq in H
      | H : (_ =? _) = true |- _ => apply Z.eqb_eq in H
      | H : same_list _ _ = true |- _ => apply same_list_equal in H
      | I : forall b, same_number ?a b = true -> _, H : same_number ?a _ = true |- _ => apply I in H
      end; subst; reflexivity.
Qed.

(** ** Ranges of whole numbers *)

Record range := Range { low : Z; high : Z }.
Definition within_range (z : Z) (r : range) : Prop := low r <= z <= high r.

Definition exactly (z : Z) : range := Range z z.
Definition plus (r s : range) : range := Range (low r + low s) (high r + high s).
Definition minus (r s : range) : range := Range (low r - high s) (high r - low s).
Definition times (r s : range) : range :=
  let a := low r * low s in let b := low r * high s in let c := high r * low s in let d := high r * high s in
  Range (Z.min (Z.min a b) (Z.min c d)) (Z.max (Z.max a b) (Z.max c d)).
Definition squared (r : range) : range :=
  let a := low r * low r in let b := high r * high r in
  Range (if (low r <=? 0) && (0 <=? high r) then 0 else Z.min a b) (Z.max a b).
Definition meet (r s : range) : range := Range (Z.max (low r) (low s)) (Z.min (high r) (high s)).
Definition or_zero (r : range) : range := Range (Z.min 0 (low r)) (Z.max 0 (high r)).
Definition halved (r : range) : range := Range (- (- low r / 2)) (high r / 2).
Definition is_zero (r : range) : bool := (low r =? 0) && (high r =? 0).
Definition size (r : range) : Z := Z.max (- low r) (high r).

Ltac ranges := unfold within_range, exactly, plus, minus, meet, or_zero in *; cbn [low high] in *; lia.

Lemma times_between x l h k : l <= x <= h -> Z.min (l * k) (h * k) <= x * k <= Z.max (l * k) (h * k).
Proof.
  intros X. destruct (Z.le_ge_cases 0 k).
  - assert (l * k <= x * k) by nia. assert (x * k <= h * k) by nia. lia.
  - assert (x * k <= l * k) by nia. assert (h * k <= x * k) by nia. lia.
Qed.

Lemma times_within x y r s : within_range x r -> within_range y s -> within_range (x * y) (times r s).
Proof.
  unfold within_range, times. cbn [low high]. intros X Y.
  assert (A := times_between x _ _ (low s) X). assert (B := times_between x _ _ (high s) X).
  assert (C := times_between y _ _ x Y). rewrite (Z.mul_comm (low s) x), (Z.mul_comm (high s) x), (Z.mul_comm y x) in C. lia.
Qed.

Lemma squared_within x r : within_range x r -> within_range (x * x) (squared r).
Proof.
  unfold within_range, squared. cbn [low high]. intros X. destruct r as [l h]. cbn [low high] in *.
  assert (U : x * x <= Z.max (l * l) (h * h)) by (destruct (Z.le_ge_cases 0 x); [assert (x * x <= h * h) by nia|assert (x * x <= l * l) by nia]; lia).
  split; [|exact U]. destruct (Z.leb_spec l 0), (Z.leb_spec 0 h); cbn [andb].
  - nia.
  - assert (h * h <= x * x) by nia. lia.
  - assert (l * l <= x * x) by nia. lia.
  - lia.
Qed.

Lemma halved_within x r : within_range (2 * x) r -> within_range x (halved r).
Proof.
  unfold within_range, halved. cbn [low high]. intros X.
  pose proof (Z.div_mod (- low r) 2 ltac:(lia)). pose proof (Z.mod_pos_bound (- low r) 2 ltac:(lia)).
  pose proof (Z.div_mod (high r) 2 ltac:(lia)). pose proof (Z.mod_pos_bound (high r) 2 ltac:(lia)). lia.
Qed.

Lemma is_zero_zero x r : is_zero r = true -> within_range x r -> x = 0.
Proof. intros Z X. apply andb_prop in Z as [A B]. apply Z.eqb_eq in A, B. ranges. Qed.

Lemma size_bounds x r : within_range x r -> Z.abs x <= size r.
Proof. unfold size. ranges. Qed.

(** ** Boxes of two units *)

(** The ranges of a column in both units; where it is shared, both have the same value. *)
Record side := Side { own : range; other : range; shared : bool }.
Definition box := list side.
Definition at_column (b : box) (i : nat) : side := nth i b (Side (exactly 0) (exactly 0) true).

Definition inside (b : box) (u v : unit) : Prop :=
  forall i, within_range (u i) (own (at_column b i)) /\ within_range (v i) (other (at_column b i))
    /\ (shared (at_column b i) = true -> u i = v i).

Record ranges := Ranges { of_own : range; of_other : range; of_change : range }.

Definition change_of_column (s : side) : range := if shared s then exactly 0 else minus (own s) (other s).

(** Whether a number is between two others for all, for none, or it depends. *)
Definition decided (r : range) (least most : Z) : option bool :=
  if (least <=? low r) && (high r <=? most) then Some true
  else if (high r <? least) || (most <? low r) then Some false else None.

Definition where_range (d : option bool) (r : range) : range :=
  match d with Some true => r | Some false => exactly 0 | None => or_zero r end.

Definition table_range (r : range) (values : list Z) : range :=
  let reached :=
    if (0 <=? low r) && (high r <? Z.of_nat (length values))
    then firstn (Z.to_nat (high r - low r + 1)) (skipn (Z.to_nat (low r)) values) else 0 :: values in
  Range (fold_right Z.min (hd 0 reached) reached) (fold_right Z.max (hd 0 reached) reached).

Fixpoint reach (b : box) (e : number) : ranges :=
  match e with
  | Column i => let s := at_column b i in Ranges (own s) (other s) (change_of_column s)
  | Constant z => Ranges (exactly z) (exactly z) (exactly 0)
  | Plus x y =>
      let r := reach b x in let s := reach b y in
      Ranges (plus (of_own r) (of_own s)) (plus (of_other r) (of_other s)) (plus (of_change r) (of_change s))
  | Times x y =>
      let r := reach b x in let s := reach b y in let same := same_number x y in
      let one := if same then squared (of_own r) else times (of_own r) (of_own s) in
      let two := if same then squared (of_other r) else times (of_other r) (of_other s) in
      Ranges one two
        (meet (minus one two)
          (if same then times (of_change r) (plus (of_own r) (of_other r))
           else halved (plus (times (of_change r) (plus (of_own s) (of_other s)))
                             (times (plus (of_own r) (of_other r)) (of_change s)))))
  | Shift x bits =>
      let r := reach b x in let m := 2 ^ Zpos bits in
      let down := fun s => Range (low s / m) (high s / m) in
      Ranges (down (of_own r)) (down (of_other r))
        (meet (minus (down (of_own r)) (down (of_other r))) (Range (low (of_change r) / m) (- (- high (of_change r) / m))))
  | Clip x least most =>
      let r := reach b x in
      let held := fun s => Range (clip least most (low s)) (clip least most (high s)) in
      Ranges (held (of_own r)) (held (of_other r)) (meet (minus (held (of_own r)) (held (of_other r))) (or_zero (of_change r)))
  | Where c least most x =>
      let k := reach b c in let r := reach b x in
      let d := decided (of_own k) least most in let d' := decided (of_other k) least most in
      let one := where_range d (of_own r) in let two := where_range d' (of_other r) in
      Ranges one two
        (match d, d' with
         | Some true, Some true => of_change r
         | _, _ => if is_zero (of_change k) then meet (minus one two) (or_zero (of_change r)) else minus one two
         end)
  | Lookup x values =>
      let r := reach b x in
      let one := table_range (of_own r) values in let two := table_range (of_other r) values in
      Ranges one two (if is_zero (of_change r) then exactly 0 else minus one two)
  end.

Lemma decided_right z r least most : within_range z r ->
  match decided r least most with
  | Some true => least <= z <= most
  | Some false => z < least \/ most < z
  | None => True
  end.
Proof.
  unfold decided, within_range. intros R.
  destruct (Z.leb_spec least (low r)), (Z.leb_spec (high r) most); cbn [andb]; try lia;
    destruct (Z.ltb_spec (high r) least), (Z.ltb_spec most (low r)); cbn [orb]; trivial; lia.
Qed.

Lemma where_within z x r s least most : within_range z r -> within_range x s ->
  within_range (if (least <=? z) && (z <=? most) then x else 0) (where_range (decided r least most) s).
Proof.
  intros R S. pose proof (decided_right z r least most R) as D. unfold where_range.
  destruct (Z.leb_spec least z), (Z.leb_spec z most); cbn [andb];
    destruct (decided r least most) as [[]|]; try lia; try ranges.
Qed.

Lemma fold_min_max values x start : In x values -> fold_right Z.min start values <= x <= fold_right Z.max start values.
Proof. induction values as [|y r IH]; cbn [fold_right In]; [easy|]. intros [<-|I]; [lia|]. specialize (IH I). lia. Qed.

Lemma table_within z r values : within_range z r ->
  within_range (nth (Z.to_nat z) values 0) (table_range r values).
Proof.
  intros R. unfold within_range, table_range. cbn [low high].
  destruct (Z.leb_spec 0 (low r)), (Z.ltb_spec (high r) (Z.of_nat (length values))); cbn [andb]; apply fold_min_max;
    try (destruct (nth_in_or_default (Z.to_nat z) values 0) as [I|E]; [now right|left; now rewrite E]).
  unfold within_range in R.
  assert (E : nth (Z.to_nat z) values 0 = nth (Z.to_nat (z - low r)) (firstn (Z.to_nat (high r - low r + 1)) (skipn (Z.to_nat (low r)) values)) 0).
  { rewrite <- (firstn_skipn (Z.to_nat (low r)) values) at 1.
    rewrite app_nth2; rewrite firstn_length_le by lia; [|lia].
    rewrite <- (firstn_skipn (Z.to_nat (high r - low r + 1)) (skipn (Z.to_nat (low r)) values)) at 1.
    rewrite app_nth1; [f_equal; lia|]. rewrite firstn_length_le; [lia|]. rewrite skipn_length. lia. }
  rewrite E. apply nth_In. rewrite firstn_length_le; [lia|]. rewrite skipn_length. lia.
Qed.

(** Whatever two units in a box are, their numbers and the change between them are in these ranges. *)
Theorem reach_within b u v e : inside b u v ->
  within_range (value u e) (of_own (reach b e)) /\ within_range (value v e) (of_other (reach b e))
  /\ within_range (value u e - value v e) (of_change (reach b e)).
Proof.
  intros I. induction e as [i|z|x [X [Y C]] y [X' [Y' C']]|x [X [Y C]] y [X' [Y' C']]|x [X [Y C]] bits|x [X [Y C]] least most|c [K [L D]] least most x [X [Y C]]|x [X [Y C]] values];
    cbn [reach value of_own of_other of_change].
  - destruct (I i) as (A & B & S). repeat split; try apply A; try apply B; unfold change_of_column;
      destruct (shared (at_column b i)); ranges.
  - ranges.
  - ranges.
  - set (r := reach b x) in *. set (s := reach b y) in *.
    assert (P := times_within _ _ _ _ X X'). assert (Q := times_within _ _ _ _ Y Y').
    assert (N : within_range (value u y + value v y) (plus (of_own s) (of_other s))) by (clear - X' Y'; ranges).
    assert (M : within_range (value u x + value v x) (plus (of_own r) (of_other r))) by (clear - X Y; ranges).
    assert (T1 := times_within _ _ _ _ C N). assert (T2 := times_within _ _ _ _ M C').
    destruct (same_number x y) eqn:E.
    + apply same_number_equal in E. subst y. subst s. fold r in T1.
      assert (P' := squared_within _ _ X). assert (Q' := squared_within _ _ Y).
      split; [exact P'|]. split; [exact Q'|]. clear P Q T2.
      replace ((value u x - value v x) * (value u x + value v x)) with (value u x * value u x - value v x * value v x) in T1 by ring.
      clear - P' Q' T1. ranges.
    + split; [exact P|]. split; [exact Q|].
      assert (H : within_range (value u x * value u y - value v x * value v y)
        (halved (plus (times (of_change r) (plus (of_own s) (of_other s))) (times (plus (of_own r) (of_other r)) (of_change s))))).
      { apply halved_within. rewrite product_change. clear - T1 T2. ranges. }
      clear - P Q H. ranges.
  - set (r := reach b x) in *. assert (M : 0 < 2 ^ Z.pos bits) by (apply Z.pow_pos_nonneg; easy).
    revert M. generalize (2 ^ Z.pos bits) as m. intros m M.
    assert (F := floor_range (value u x) (value v x) m _ _ M C).
    assert (D : forall z s, within_range z s -> low s / m <= z / m <= high s / m)
      by (intros z s [A B]; split; apply Z.div_le_mono; assumption).
    specialize (D _ _ X) as X'. specialize (D _ _ Y) as Y'. clear D X Y C I. revert F X' Y'.
    generalize (value u x / m) (value v x / m) (low (of_own r) / m) (high (of_own r) / m) (low (of_other r) / m)
      (high (of_other r) / m) (low (of_change r) / m) (- high (of_change r) / m). clear. intros. ranges.
  - set (r := reach b x) in *.
    assert (F := clip_range least most (value u x) (value v x) _ _ C).
    assert (D : forall z s, within_range z s -> clip least most (low s) <= clip least most z <= clip least most (high s))
      by (intros z s [A B]; unfold clip; lia).
    specialize (D _ _ X) as X'. specialize (D _ _ Y) as Y'. clear D X Y C I. revert F X' Y'.
    generalize (clip least most (value u x)) (clip least most (value v x)) (clip least most (low (of_own r)))
      (clip least most (high (of_own r))) (clip least most (low (of_other r))) (clip least most (high (of_other r))).
    clear. intros. ranges.
  - set (k := reach b c) in *. set (r := reach b x) in *.
    assert (P := where_within _ _ _ _ least most K X). assert (Q := where_within _ _ _ _ least most L Y).
    split; [exact P|]. split; [exact Q|].
    pose proof (decided_right _ _ least most K) as DK. pose proof (decided_right _ _ least most L) as DL.
    set (p := if (least <=? value u c) && (value u c <=? most) then value u x else 0) in *.
    set (q := if (least <=? value v c) && (value v c <=? most) then value v x else 0) in *.
    assert (G : within_range (p - q) (if is_zero (of_change k)
      then meet (minus (where_range (decided (of_own k) least most) (of_own r)) (where_range (decided (of_other k) least most) (of_other r)))
        (or_zero (of_change r))
      else minus (where_range (decided (of_own k) least most) (of_own r)) (where_range (decided (of_other k) least most) (of_other r)))).
    { destruct (is_zero (of_change k)) eqn:Z; [|clearbody p q; clear - P Q; ranges].
      apply (is_zero_zero _ _ Z) in D. assert (E : value v c = value u c) by (clear - D; lia).
      assert (O : within_range (p - q) (or_zero (of_change r))).
      { subst p q. rewrite E. destruct ((least <=? value u c) && (value u c <=? most)); clear - C; ranges. }
      clearbody p q. clear - P Q O. ranges. }
    destruct (decided (of_own k) least most) as [[]|]; try exact G.
    destruct (decided (of_other k) least most) as [[]|]; try exact G.
    clear G P Q. subst p q. destruct (Z.leb_spec least (value u c)), (Z.leb_spec (value u c) most); try lia.
    destruct (Z.leb_spec least (value v c)), (Z.leb_spec (value v c) most); try lia. exact C.
  - set (r := reach b x) in *. assert (P := table_within _ _ values X). assert (Q := table_within _ _ values Y).
    split; [exact P|]. split; [exact Q|]. destruct (is_zero (of_change r)) eqn:Z; [|ranges].
    apply (is_zero_zero _ _ Z) in C. replace (value v x) with (value u x) by lia. ranges.
Qed.
