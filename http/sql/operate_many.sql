-- $1 who, $2 action, $3 ids, $4 arguments.
SELECT json_build_object('answers', txrelay.operate_many($1, $2, $3::bigint[], $4::jsonb))
