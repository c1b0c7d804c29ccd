-- One record for each user who was assigned, also without events: their number is public.
{{ config(materialized='table') }}

select
    assigned.user_id,
    assigned.arm,
    assigned.week,
    least(coalesce(sum(events.revenue), 0), 100) as revenue,
    cast(count(events.revenue) > 0 as integer) as bought
from {{ ref('assignments') }} as assigned
left join {{ ref('events') }} as events
    on events.user_id = assigned.user_id
    and events.happened_at >= assigned.assigned_at
    and events.happened_at < assigned.assigned_at + interval '7 days'
where assigned.assigned_at < current_date - interval '7 days'  -- metrics of a cohort are final
group by assigned.user_id, assigned.arm, assigned.week
