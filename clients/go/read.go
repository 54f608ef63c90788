package txrelay

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Wake says when to look again. Its sources: a LISTEN of your driver, on the channel that the function
// names; without one (nil) the table is read once a second. A notification is a hint that may be lost,
// so both read again every 30 s too.
type Wake <-chan struct{}

const (
	poll    = time.Second
	look    = 30 * time.Second
	overlap = int64(60_000_000) // microseconds
	page    = 1000
)

func rest(ctx context.Context, wake Wake) error {
	limit := look
	if wake == nil {
		limit = poll
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wake:
	case <-timer.C:
	}
	return nil
}

// ErrNotKnown: the transaction was not committed, or its record was removed.
var ErrNotKnown = errors.New("txrelay: no such transaction")

// Wait returns the transaction once it has ended. wake: channel tx_ended_ID. q is not in a transaction.
func Wait(ctx context.Context, q Querier, tx int64, wake Wake) (*Transaction, error) {
	for {
		t, err := Status(ctx, q, tx)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, fmt.Errorf("%w: %d", ErrNotKnown, tx)
		}
		if t.Outcome != "" {
			return t, nil
		}
		if err := rest(ctx, wake); err != nil {
			return nil, err
		}
	}
}

// End is a final outcome. Follow from its Position to go on after it.
type End struct {
	Position    int64
	ID          int64  `json:"id"`
	Account     string `json:"alias"`
	Outcome     string `json:"outcome"`
	Error       string `json:"error"`
	Nonce       *int64 `json:"nonce"`
	Hash        string `json:"hash"`
	BlockNumber *int64 `json:"block_number"`
	BlockHash   string `json:"block_hash"`
	Creator     string `json:"creator"`
	Traceparent string `json:"traceparent"`
	At          int64  `json:"at"` // microseconds since 1970
	Gap         bool   // no end: what ended before At was removed, and you may have missed some of it
}

// Now is the position of Follow from now on.
const Now = int64(-1)

const ends = `SELECT to_jsonb(x)::text FROM (SELECT f.id, a.alias, f.nonce, '0x' || encode(f.hash, 'hex') AS hash,
        '0x' || encode(f.block_hash, 'hex') AS block_hash, f.block_number, f.outcome, f.error, f.creator, f.traceparent,
        (extract(epoch FROM f.finished_at) * 1000000)::bigint AS at
    FROM txrelay.follow_finished f JOIN txrelay.follow_accounts a ON a.account = f.account
    WHERE f.id IS NOT NULL AND f.finished_at >= timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond'
      AND (f.finished_at, f.id) > (timestamptz 'epoch' + $1::text::bigint * interval '1 microsecond', $2::text::bigint)
    ORDER BY f.finished_at, f.id LIMIT 1000) x ORDER BY x.at, x.id`

const place = `SELECT txrelay.follow_position()::text,
    (SELECT (extract(epoch FROM k.dropped_before) * 1000000)::bigint FROM txrelay.follow_kept k)`

func endsAfter(ctx context.Context, q Querier, at, id int64) ([]End, error) {
	rows, err := q.QueryContext(ctx, ends, strconv.FormatInt(at, 10), strconv.FormatInt(id, 10))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []End
	for rows.Next() {
		var text string
		var e End
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, rows.Err()
}

type follower struct {
	reached, floor, upTo int64
	delivered            map[int64]int64 // by id: when it ended, for what a later scan reads again
	whole                time.Time       // when a scan began before the last position
	each                 func(End) error
}

// Where the database is now: everything that ended before is visible.
func (f *follower) look(ctx context.Context, q Querier) error {
	rows, err := q.QueryContext(ctx, place)
	if err != nil {
		return err
	}
	defer rows.Close()
	var now string
	var kept sql.NullInt64
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(&now, &kept); err != nil {
		return err
	}
	if f.upTo, err = strconv.ParseInt(now, 10, 64); err != nil {
		return err
	}
	if f.reached == Now {
		f.reached, f.floor = f.upTo, f.upTo
	} else if f.whole.IsZero() && kept.Int64 > f.reached {
		return f.each(End{Gap: true, Position: f.reached, At: kept.Int64})
	}
	return nil
}

func (f *follower) take(list []End) error {
	for _, e := range list {
		if _, seen := f.delivered[e.ID]; seen {
			continue
		}
		f.delivered[e.ID] = e.At
		if at := e.At; at > f.reached {
			if at > f.upTo {
				at = f.upTo
			}
			if at > f.reached {
				f.reached = at
			}
		}
		e.Position = f.reached
		if err := f.each(e); err != nil {
			return err
		}
	}
	return nil
}

// Once a minute from before the last position: an owner without pg_read_all_stats does not see all
// open transactions.
func (f *follower) scan(ctx context.Context, q Querier) error {
	at := f.reached
	if again := f.whole.IsZero() || time.Since(f.whole) >= time.Minute; again {
		f.whole = time.Now()
		at -= overlap
	}
	if at < f.floor {
		at = f.floor
	}
	for id := int64(-1); ; {
		list, err := endsAfter(ctx, q, at, id)
		if err != nil {
			return err
		}
		if err := f.take(list); err != nil {
			return err
		}
		if len(list) < page {
			break
		}
		at, id = list[page-1].At, list[page-1].ID
	}
	if f.upTo > f.reached {
		f.reached = f.upTo
	}
	for id, at := range f.delivered {
		if at < f.reached-2*overlap {
			delete(f.delivered, id)
		}
	}
	return nil
}

// Follow calls each with every final outcome from a position on, at least once, until it returns an
// error, ctx is done, or the connection is lost; then follow again from the last position that you have
// dealt with. 0: all records that there are; Now: from now on. wake: channel pending_tx_removed.
func Follow(ctx context.Context, q Querier, position int64, wake Wake, each func(End) error) error {
	f := follower{reached: position, delivered: map[int64]int64{}, each: each}
	for {
		if err := f.look(ctx, q); err != nil {
			return err
		}
		if err := f.scan(ctx, q); err != nil {
			return err
		}
		if err := rest(ctx, wake); err != nil {
			return err
		}
	}
}
