SELECT
  (
    "t3"."treatment" * 3
  ) + "t3"."covariate_0" AS "place",
  CAST(COUNT(*) AS Nullable(String)) AS "sum_0",
  CAST(SUM(CAST("t3"."outcome" AS Nullable(Decimal(38, 0)))) AS Nullable(String)) AS "sum_1",
  CAST(SUM(
    CAST(bitShiftRight(
      CAST(1099511627776 - (
        CAST("t3"."outcome" AS Nullable(Int64)) * "t3"."outcome"
      ) AS Nullable(Int64)),
      CAST(20 AS Nullable(Int64))
    ) AS Nullable(Decimal(38, 0)))
  ) AS Nullable(String)) AS "sum_2"
FROM (
  SELECT
    *
  FROM (
    SELECT
      CAST(CASE WHEN "t1"."read_0" = 0 THEN 0 WHEN "t1"."read_0" = 1 THEN 1 ELSE 2 END AS Nullable(Int32)) AS "treatment",
      CAST(CAST(FLOOR(
        (
          (
            CASE
              WHEN "t1"."read_1" BETWEEN 0.0 AND 10.0
              THEN "t1"."read_1"
              ELSE CASE
                WHEN "t1"."read_1" < 0.0
                THEN 0.0
                WHEN "t1"."read_1" <= inf
                THEN 10.0
                ELSE 5.0
              END
            END - 5.0
          ) * 209715.2
        ) + 0.5
      ) AS Nullable(Int64)) AS Nullable(Int32)) AS "outcome",
      CAST(CASE WHEN "t1"."read_2" IN ('a') THEN 0 WHEN "t1"."read_2" IN ('b') THEN 1 ELSE 2 END AS Nullable(Int32)) AS "covariate_0"
    FROM (
      SELECT
        "t0"."treat" AS "read_0",
        "t0"."score" AS "read_1",
        TRIM(BOTH ' \t\n\r\v\f' FROM replaceAll(
          replaceAll(
            replaceAll(
              replaceAll(
                replaceAll(
                  replaceAll(
                    replaceAll(
                      replaceAll(
                        replaceAll(
                          replaceAll(
                            translate("t0"."ward", 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'),
                            '\t',
                            ' '
                          ),
                          '\n',
                          ' '
                        ),
                        '\v',
                        ' '
                      ),
                      '\f',
                      ' '
                    ),
                    '\r',
                    ' '
                  ),
                  ' ',
                  ' '
                ),
                ' ',
                ' '
              ),
              ' ',
              ' '
            ),
            ' ',
            ' '
          ),
          '﻿',
          ' '
        )) AS "read_2"
      FROM "clinic"."visits" AS "t0"
    ) AS "t1"
  ) AS "t2"
  WHERE
    "t2"."treatment" < 2
) AS "t3"
GROUP BY
  (
    "t3"."treatment" * 3
  ) + "t3"."covariate_0"
