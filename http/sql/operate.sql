-- $1 who, $2 action, $3 id, $4 account, $5 arguments.
SELECT json_build_object('answer', txrelay.operate($1, $2, $3::bigint, $4, $5::jsonb))
