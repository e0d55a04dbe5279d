-- Three questions to rows.ndjson, in the SQL of DuckDB:
--
--   pagewise report --rows 'runs/*.jsonl' >rows.ndjson
--   duckdb <queries.sql

-- Which kernel is slower with a mapping?
select facts.kernel as kernel, workload, cache, count(*) as runs, median(reads_per_second_median) as reads_per_second
from 'rows.ndjson' where method = 'mmap' and role = 'measured' and reads_per_second_median is not null
group by all order by workload, cache, reads_per_second;

-- By how much is a mapping ahead of calls within each run? The speed of a machine does not matter.
with runs as (
    select run, facts.kernel as kernel, workload, cache,
           max(reads_per_second_median) filter (method = 'mmap') / max(reads_per_second_median) filter (method = 'pread') as ratio
    from 'rows.ndjson' where role = 'measured' and status = 'ok' group by all)
select kernel, workload, cache, count(*) as runs, median(ratio) as ratio, min(ratio) as least, max(ratio) as most
from runs where ratio is not null group by all order by ratio;

-- Which machines lack figures, and why?
select facts."host-name" as host, method, cache, status, reason
from 'rows.ndjson' where role = 'measured' and status <> 'ok' order by all;
