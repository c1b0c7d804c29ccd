(** Written by [python -m checks.formal] from the Python code. Do not edit. *)

From Coq Require Import QArith ZArith List.
From dpcausal Require Import Frame Exported.
Import ListNotations.
Open Scope Q_scope.


Definition exported_arm_totals : list exported := [
  Exported outcome_only false []%nat l1 [(2%nat, (2097152 # 1))] (1 # 1);
  Exported outcome_only false []%nat l2 [(2%nat, (2097152 # 1))] (1 # 1);
  Exported record false []%nat l1 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (3 # 2);
  Exported record false []%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (3 # 2))] (1 # 1);
  Exported record true []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (2 # 1))] (3 # 2);
  Exported record true []%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (3 # 2)); (1%nat, (2 # 1))] (1 # 1);
  Exported record_within_arm false []%nat l1 [(2%nat, (2097152 # 1))] (1 # 1);
  Exported record_within_arm false []%nat l2 [(2%nat, (2097152 # 1))] (1 # 1)].

Definition exported_arm_moments : list exported := [
  Exported outcome_only false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (4194305 # 4194304);
  Exported outcome_only false []%nat l2 [(4%nat, (2097152 # 1))] (2097153 # 2097152);
  Exported record false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (1%nat, (2 # 1))] (3 # 2);
  Exported record false []%nat l2 [(4%nat, (2097152 # 1)); (1%nat, (3 # 2))] (2097153 # 2097152);
  Exported record true []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2 # 1))] (3 # 2);
  Exported record true []%nat l2 [(4%nat, (2097152 # 1)); (1%nat, (3 # 2)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record_within_arm false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (4194305 # 4194304);
  Exported record_within_arm false []%nat l2 [(4%nat, (2097152 # 1))] (2097153 # 2097152)].

Definition exported_change_moments : list exported := [
  Exported outcome_only false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (4194305 # 4194304);
  Exported outcome_only false []%nat l2 [(4%nat, (2097152 # 1))] (2097153 # 2097152);
  Exported record false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (1%nat, (2 # 1))] (3 # 2);
  Exported record false []%nat l2 [(4%nat, (2097152 # 1)); (1%nat, (3 # 2))] (2097153 # 2097152);
  Exported record true []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2 # 1))] (3 # 2);
  Exported record true []%nat l2 [(4%nat, (2097152 # 1)); (1%nat, (3 # 2)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record_within_arm false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (4194305 # 4194304);
  Exported record_within_arm false []%nat l2 [(4%nat, (2097152 # 1))] (2097153 # 2097152)].

Definition exported_cell_moments : list exported := [
  Exported outcome_only false [0; 2]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported outcome_only false [0; 2]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported outcome_only false [0; 3]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported outcome_only false [0; 3]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported outcome_only false [0; 6]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported outcome_only false [0; 6]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported outcome_only false [0; 9]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported outcome_only false [0; 9]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported record false [1; 2]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record false [1; 2]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record false [1; 6]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record false [1; 6]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record true [1; 2]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record true [1; 2]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record true [1; 3]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record true [1; 3]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record true [1; 6]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record true [1; 6]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record true [1; 9]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record true [1; 9]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record_within_arm false [0; 2]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported record_within_arm false [0; 2]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported record_within_arm false [0; 3]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (1 # 1))] (4194305 # 4194304);
  Exported record_within_arm false [0; 3]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1)); (2%nat, (2097152 # 1)); (1%nat, (1 # 1))] (2097153 # 2097152);
  Exported record_within_arm false [1; 6]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record_within_arm false [1; 6]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152);
  Exported record_within_arm false [1; 9]%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1)); (1%nat, (2097152 # 1)); (1%nat, (4194304 # 1)); (1%nat, (4 # 1))] (3 # 2);
  Exported record_within_arm false [1; 9]%nat l2 [(2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1)); (2%nat, (2097152 # 1)); (1%nat, (2 # 1))] (2097153 # 2097152)].

Definition exported_cluster_moments : list exported := [
  Exported outcome_only false [0; 3]%nat l1 [(1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1))] (1048577 # 524288);
  Exported outcome_only false [0; 3]%nat l2 [(1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1))] (1048577 # 524288);
  Exported record false [1; 3]%nat l1 [(1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1))] (1572865 # 524288);
  Exported record false [1; 3]%nat l2 [(1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1))] (1048577 # 524288);
  Exported record true [1; 3]%nat l1 [(1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1))] (1572865 # 524288);
  Exported record true [1; 3]%nat l2 [(1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1))] (1048577 # 524288);
  Exported record_within_arm false [1; 3]%nat l1 [(1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1)); (1%nat, (2 # 1)); (1%nat, (1048576 # 1)); (1%nat, (2097152 # 1))] (1572865 # 524288);
  Exported record_within_arm false [1; 3]%nat l2 [(1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1)); (1%nat, (1 # 1)); (2%nat, (1048576 # 1))] (1048577 # 524288)].

Definition exported_outcomes_below : list exported := [
  Exported outcome_only false []%nat l1 [(1%nat, (1 # 1))] (1 # 1);
  Exported outcome_only false []%nat l2 [(1%nat, (1 # 1))] (1 # 1);
  Exported record false []%nat l1 [(1%nat, (1 # 1))] (1 # 1);
  Exported record false []%nat l2 [(1%nat, (1 # 1))] (1 # 1);
  Exported record true []%nat l1 [(1%nat, (1 # 1))] (1 # 1);
  Exported record true []%nat l2 [(1%nat, (1 # 1))] (1 # 1);
  Exported record_within_arm false []%nat l1 [(1%nat, (1 # 1))] (1 # 1);
  Exported record_within_arm false []%nat l2 [(1%nat, (1 # 1))] (1 # 1)].

Definition exported_outcome_counts : list exported := [
  Exported outcome_only false [2]%nat l1 [(2%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [2]%nat l2 [(2%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [2]%nat l1 [(2%nat, (1 # 1))] (2 # 1);
  Exported record false [2]%nat l2 [(2%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [2]%nat l1 [(2%nat, (1 # 1))] (2 # 1);
  Exported record true [2]%nat l2 [(2%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record true [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [2]%nat l1 [(2%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [2]%nat l2 [(2%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000)].

Definition exported_arm_outcome_counts : list exported := [
  Exported outcome_only false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record true [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record true [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [4]%nat l1 [(4%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [4]%nat l2 [(4%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000)].

Definition exported_event_counts : list exported := [
  Exported outcome_only false [10]%nat l1 [(10%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [10]%nat l2 [(10%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [14]%nat l1 [(14%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [14]%nat l2 [(14%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [42]%nat l1 [(42%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [42]%nat l2 [(42%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [14]%nat l1 [(14%nat, (1 # 1))] (2 # 1);
  Exported record false [14]%nat l2 [(14%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [10]%nat l1 [(10%nat, (1 # 1))] (2 # 1);
  Exported record true [10]%nat l2 [(10%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [42]%nat l1 [(42%nat, (1 # 1))] (2 # 1);
  Exported record true [42]%nat l2 [(42%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record true [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [10]%nat l1 [(10%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [10]%nat l2 [(10%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [14]%nat l1 [(14%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [14]%nat l2 [(14%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [42]%nat l1 [(42%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [42]%nat l2 [(42%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [8]%nat l1 [(8%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [8]%nat l2 [(8%nat, (1 # 1))] (707106781187 # 500000000000)].

Definition exported_stratum_counts : list exported := [
  Exported outcome_only false [12]%nat l1 [(12%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [12]%nat l2 [(12%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [18]%nat l1 [(18%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [18]%nat l2 [(18%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [18]%nat l1 [(18%nat, (1 # 1))] (2 # 1);
  Exported record false [18]%nat l2 [(18%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [12]%nat l1 [(12%nat, (1 # 1))] (2 # 1);
  Exported record true [12]%nat l2 [(12%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record true [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [12]%nat l1 [(12%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [12]%nat l2 [(12%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [18]%nat l1 [(18%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [18]%nat l2 [(18%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000)].

Definition exported_score_counts : list exported := [
  Exported outcome_only false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported outcome_only false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record true [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record true [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [6]%nat l1 [(6%nat, (1 # 1))] (2 # 1);
  Exported record_within_arm false [6]%nat l2 [(6%nat, (1 # 1))] (707106781187 # 500000000000)].

Definition exported_weighted_counts : list exported := [
  Exported outcome_only false [10]%nat l1 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported outcome_only false [10]%nat l2 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [3]%nat l1 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported outcome_only false [3]%nat l2 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000);
  Exported outcome_only false [7]%nat l1 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported outcome_only false [7]%nat l2 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000);
  Exported record false [10]%nat l1 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (9 # 4);
  Exported record false [10]%nat l2 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (712609640687 # 500000000000);
  Exported record false [3]%nat l1 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (9 # 4);
  Exported record false [3]%nat l2 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (712609640687 # 500000000000);
  Exported record true [3]%nat l1 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (9 # 4);
  Exported record true [3]%nat l2 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (712609640687 # 500000000000);
  Exported record true [7]%nat l1 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (9 # 4);
  Exported record true [7]%nat l2 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (712609640687 # 500000000000);
  Exported record_within_arm false [10]%nat l1 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported record_within_arm false [10]%nat l2 [(20%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [3]%nat l1 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported record_within_arm false [3]%nat l2 [(6%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000);
  Exported record_within_arm false [7]%nat l1 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (2 # 1);
  Exported record_within_arm false [7]%nat l2 [(14%nat, (1048576 # 1)); (2%nat, (8388608 # 1))] (707106781187 # 500000000000)].

Definition exported_received_moments : list exported := [
  Exported outcome_only false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1))] (5242881 # 4194304);
  Exported outcome_only false []%nat l2 [(4%nat, (2097152 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1))] (105551552843997 # 102400000000000);
  Exported record true []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1)); (1%nat, (2 # 1)); (1%nat, (4 # 3))] (2 # 1);
  Exported record true []%nat l2 [(4%nat, (2097152 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1)); (1%nat, (3 # 2)); (1%nat, (2 # 1))] (105551552843997 # 102400000000000);
  Exported record_within_arm false []%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1))] (5308417 # 4194304);
  Exported record_within_arm false []%nat l2 [(4%nat, (2097152 # 1)); (2%nat, (8 # 1)); (2%nat, (8388608 # 1))] (105551552843997 # 102400000000000)].

Definition exported_cutoff_moments : list exported := [
  Exported outcome_only false []%nat l1 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (3 # 1);
  Exported outcome_only false []%nat l2 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (894427191 # 400000000);
  Exported record false []%nat l1 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (9 # 2);
  Exported record false []%nat l2 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (576221528581 # 250000000000);
  Exported record true []%nat l1 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (9 # 2);
  Exported record true []%nat l2 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (576221528581 # 250000000000);
  Exported record_within_arm false []%nat l1 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (9 # 2);
  Exported record_within_arm false []%nat l2 [(2%nat, (2048 # 1)); (2%nat, (1048576 # 1)); (2%nat, (2048 # 1)); (2%nat, (4 # 1)); (2%nat, (4194304 # 1)); (2%nat, (2097152 # 1))] (576221528581 # 250000000000)].

Definition exported_augmented_scores : list exported := [
  Exported outcome_only false []%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (25 # 16);
  Exported outcome_only false []%nat l2 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (535 # 512);
  Exported record false []%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (25 # 16);
  Exported record false []%nat l2 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (535 # 512);
  Exported record true []%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (25 # 16);
  Exported record true []%nat l2 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (535 # 512);
  Exported record_within_arm false []%nat l1 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (25 # 16);
  Exported record_within_arm false []%nat l2 [(1%nat, (2097152 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (33554432 # 1)); (1%nat, (16777216 # 1)); (1%nat, (4 # 1))] (535 # 512)].

Definition exported_block_effects : list exported := [
  Exported outcome_only false [2]%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (524289 # 262144);
  Exported outcome_only false [2]%nat l2 [(4%nat, (2097152 # 1))] (370728307201751043 # 262144000000000000);
  Exported record false [2]%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (524289 # 262144);
  Exported record false [2]%nat l2 [(4%nat, (2097152 # 1))] (370728307201751043 # 262144000000000000);
  Exported record true [2]%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (524289 # 262144);
  Exported record true [2]%nat l2 [(4%nat, (2097152 # 1))] (370728307201751043 # 262144000000000000);
  Exported record_within_arm false [2]%nat l1 [(2%nat, (2097152 # 1)); (2%nat, (4194304 # 1))] (524289 # 262144);
  Exported record_within_arm false [2]%nat l2 [(4%nat, (2097152 # 1))] (370728307201751043 # 262144000000000000)].

Definition exported_weighted_arms : list exported := [
  Exported outcome_only false []%nat l1 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (163841 # 131072);
  Exported outcome_only false []%nat l2 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (16892029 # 16384000);
  Exported record false []%nat l1 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (163841 # 131072);
  Exported record false []%nat l2 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (16892029 # 16384000);
  Exported record true []%nat l1 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (8 # 1))] (163841 # 131072);
  Exported record true []%nat l2 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1)); (1%nat, (8 # 1))] (16892029 # 16384000);
  Exported record_within_arm false []%nat l1 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (163841 # 131072);
  Exported record_within_arm false []%nat l2 [(1%nat, (2097152 # 1)); (2%nat, (8388608 # 1)); (1%nat, (4194304 # 1)); (1%nat, (8388608 # 1)); (1%nat, (16777216 # 1))] (16892029 # 16384000)].
