SELECT
  (
    "t3"."treatment" * 3
  ) + "t3"."covariate_0" AS "place",
  CAST(COUNT(*) AS VARCHAR) AS "sum_0",
  CAST(SUM(CAST("t3"."outcome" AS DECIMAL(38, 0))) AS VARCHAR) AS "sum_1",
  CAST(SUM(
    CAST(BITWISE_RIGHT_SHIFT(
      (
        1099511627776 - (
          CAST("t3"."outcome" AS BIGINT) * "t3"."outcome"
        )
      ),
      20
    ) AS DECIMAL(38, 0))
  ) AS VARCHAR) AS "sum_2"
FROM (
  SELECT
    *
  FROM (
    SELECT
      CAST(CASE WHEN "t1"."read_0" = 0 THEN 0 WHEN "t1"."read_0" = 1 THEN 1 ELSE 2 END AS INTEGER) AS "treatment",
      CAST(CAST(FLOOR(
        (
          (
            CASE
              WHEN "t1"."read_1" BETWEEN CAST(0.0 AS DOUBLE) AND CAST(10.0 AS DOUBLE)
              THEN "t1"."read_1"
              ELSE CASE
                WHEN "t1"."read_1" < CAST(0.0 AS DOUBLE)
                THEN CAST(0.0 AS DOUBLE)
                WHEN "t1"."read_1" <= INFINITY()
                THEN CAST(10.0 AS DOUBLE)
                ELSE CAST(5.0 AS DOUBLE)
              END
            END - CAST(5.0 AS DOUBLE)
          ) * CAST(209715.2 AS DOUBLE)
        ) + CAST(0.5 AS DOUBLE)
      ) AS BIGINT) AS INTEGER) AS "outcome",
      CAST(CASE WHEN "t1"."read_2" IN ('a') THEN 0 WHEN "t1"."read_2" IN ('b') THEN 1 ELSE 2 END AS INTEGER) AS "covariate_0"
    FROM (
      SELECT
        "t0"."treat" AS "read_0",
        "t0"."score" AS "read_1",
        TRIM(' 	
' FROM REPLACE(
          REPLACE(
            REPLACE(
              REPLACE(
                REPLACE(
                  REPLACE(
                    REPLACE(
                      REPLACE(
                        REPLACE(
                          REPLACE(
                            TRANSLATE("t0"."ward", 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'),
                            '	',
                            ' '
                          ),
                          '
',
                          ' '
                        ),
                        '',
                        ' '
                      ),
                      '',
                      ' '
                    ),
                    '',
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
  1
