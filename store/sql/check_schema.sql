-- What the database says of its schema, and which database of which server this session is in:
--   migrations   version:name:checksum of each that was applied, separated by commas
--   functions    the checksum of schema/functions as it was applied last
--   recorded     the digest of what these files made then; NULL where another major version of
--                Postgres computed it
--   found        the digest of what is there now
--   catalog      which rows of the catalog that is: a row has another xmin after each change
-- The digest covers functions, views, triggers that call our functions, and what our roles may do
-- with all of the schema. What a user gave to other roles, and triggers of a user's own, are no
-- part of it. Postgres prints the definitions in a form that depends on the search_path; the first
-- step sets it. Printing takes longer than all else that a session begins with. So where the
-- catalog has the rows of then, the digest is that of then.
WITH path AS MATERIALIZED (
    SELECT set_config('search_path', 'pg_catalog', true) AS is_set
), major AS (
    SELECT (current_setting('server_version_num')::int / 10000)::text || ':' AS text
), applied AS (
    SELECT string_agg(concat_ws(':', v.version, v.name, v.checksum), ',' ORDER BY v.version)
        AS migrations
    FROM txrelay.schema_version v
), recorded AS (
    SELECT f.checksum, CASE WHEN starts_with(f.digest, major.text) THEN f.digest END AS digest,
           to_jsonb(f)->>'catalog' AS catalog -- a schema before 0015 does not have this column
    FROM txrelay.schema_functions f CROSS JOIN major
), relation AS MATERIALIZED (
    SELECT c.oid, c.relname, c.relkind,
           coalesce(c.relacl, acldefault(CASE WHEN c.relkind = 'S' THEN 's' ELSE 'r' END::"char",
                                         c.relowner)) AS acl
    FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('txrelay') AND c.relkind IN ('r', 'p', 'v', 'S')
    AND NOT c.relispartition
), catalog AS (
    SELECT concat_ws(' ', count(*), sum(hashtextextended(part.text, 0))) AS text
    FROM (
        SELECT concat_ws(' ', n.oid, n.xmin) FROM pg_namespace n WHERE n.nspname = 'txrelay'
        UNION ALL
        SELECT concat_ws(' ', p.oid, p.xmin) FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace('txrelay')
        UNION ALL -- not its xmin: much that changes here is no part of the digest
        SELECT concat_ws(' ', r.oid, r.relname, r.acl) FROM relation r
        UNION ALL
        SELECT concat_ws(' ', a.attrelid, a.attnum, a.xmin) FROM relation r
        JOIN pg_attribute a ON a.attrelid = r.oid
        WHERE a.attnum > 0
        UNION ALL
        SELECT concat_ws(' ', w.oid, w.xmin) FROM relation r JOIN pg_rewrite w ON w.ev_class = r.oid
        UNION ALL
        SELECT concat_ws(' ', t.oid, t.xmin) FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid
        WHERE NOT t.tgisinternal
        UNION ALL
        SELECT concat_ws(' ', t.oid, t.typname) FROM pg_type t
        WHERE t.typnamespace = to_regnamespace('txrelay')
        UNION ALL
        SELECT concat_ws(' ', r.oid, r.rolname) FROM pg_roles r
        WHERE r.rolname IN ('txrelay_app', 'txrelay_relay', 'txrelay_follower')
    ) part (text)
)
SELECT applied.migrations,
       recorded.checksum,
       recorded.digest,
       CASE WHEN recorded.digest IS NOT NULL AND recorded.catalog = catalog.text
       THEN recorded.digest
            ELSE major.text || (
    SELECT encode(sha256(convert_to(string_agg(part.text, E'\n' ORDER BY part.text COLLATE "C"),
                                    'UTF8')), 'hex')
    FROM (
        SELECT pg_get_functiondef(p.oid) AS text, p.proname AS name, p.prokind::text AS kind,
               coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
        FROM pg_proc p
        WHERE p.pronamespace = to_regnamespace('txrelay') AND p.prokind IN ('f', 'p')
        UNION ALL
        SELECT CASE WHEN r.relkind = 'v' THEN pg_get_viewdef(r.oid) END, r.relname,
        r.relkind::text, r.acl FROM relation r
        UNION ALL
        SELECT pg_get_triggerdef(t.oid), t.tgname, t.tgenabled::text, NULL
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
        WHERE p.pronamespace = to_regnamespace('txrelay') AND NOT t.tgisinternal
        AND NOT c.relispartition
        UNION ALL
        SELECT NULL, n.nspname, 'schema', coalesce(n.nspacl, acldefault('n', n.nspowner))
        FROM pg_namespace n WHERE n.nspname = 'txrelay'
    ) object CROSS JOIN LATERAL (
        SELECT concat_ws(' ', object.kind, object.name, object.text) AS text
            WHERE object.text IS NOT NULL
        UNION ALL
        SELECT concat_ws(' ', object.kind, object.name, coalesce(r.rolname, 'PUBLIC'),
                         a.privilege_type, a.is_grantable)
        FROM aclexplode(object.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee = 0 OR r.rolname IN ('txrelay_app', 'txrelay_relay', 'txrelay_follower')
    ) part) END,
       catalog.text,
       (SELECT d.oid::bigint FROM pg_database d WHERE d.datname = current_database()),
       -- no right is needed for it
       (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
FROM path CROSS JOIN major CROSS JOIN applied LEFT JOIN recorded ON true CROSS JOIN catalog
WHERE path.is_set IS NOT NULL
