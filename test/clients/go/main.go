// What an application in Go does: in its own transaction, by the call's name, to the outcome, and after all outcomes. DB: its
// connection string; URL, TOKEN: the relay's HTTP interface. It prints one line of JSON, and fails at the first thing that is wrong.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/lib/pq"
	"txrelay"
)

const order = "INSERT INTO orders (note) VALUES ($1)"

var errDone = errors.New("all of them came")

// remark is System.remark with these bytes; below 64 of them the length is one byte.
func remark(text string) []byte {
	return append([]byte{0, 0, byte(len(text) << 2)}, text...)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprint(what...))
	}
}

func encode(ctx context.Context) {
	relay := txrelay.Relay{URL: os.Getenv("URL"), Token: os.Getenv("TOKEN")}
	call := must(relay.Encode(ctx, "alice", "System", "remark", []any{"go"}))
	check(bytes.Equal(call, remark("go")), call)
	_, err := relay.Encode(ctx, "alice", "System", "remarc", nil)
	var problem *txrelay.Problem
	check(errors.As(err, &problem) && problem.Status == 422 && problem.Code == "bad_call", err)
	relay.Token = "txr_0"
	_, err = relay.Encode(ctx, "alice", "System", "remark", []any{"go"})
	check(errors.As(err, &problem) && problem.Status == 401, err)
}

// The ids of what takes effect.
func enqueue(ctx context.Context, db *sql.DB) []int64 {
	tx := must(db.BeginTx(ctx, nil))
	must(tx.ExecContext(ctx, order, "go kept"))
	id := must(txrelay.Enqueue(ctx, tx, "alice", remark("go kept"), txrelay.Options{Key: "go-1"}))
	check(tx.Commit() == nil)
	tx = must(db.BeginTx(ctx, nil))
	must(tx.ExecContext(ctx, order, "go lost"))
	must(txrelay.Enqueue(ctx, tx, "alice", remark("go lost"), txrelay.Options{}))
	check(tx.Rollback() == nil)
	check(must(txrelay.Enqueue(ctx, db, "alice", remark("go kept"), txrelay.Options{Key: "go-1"})) == id)
	_, err := txrelay.Enqueue(ctx, db, "alice", remark("other"), txrelay.Options{Key: "go-1"})
	check(txrelay.ErrorCode(err) == "TR012", err)
	many := must(txrelay.EnqueueMany(ctx, db, "alice", [][]byte{remark("go a"), remark("go b")}, []string{"go-a", "go-b"}, txrelay.Options{Retries: 1}))
	check(len(many) == 2, many)
	check(len(must(txrelay.EnqueueMany(ctx, db, "alice", nil, nil, txrelay.Options{}))) == 0)
	return append(many, id)
}

// The ids of what is cancelled: it waits for an hour, and so does what is enqueued in its place.
func change(ctx context.Context, db *sql.DB) []int64 {
	id := must(txrelay.Enqueue(ctx, db, "alice", remark("go options"), txrelay.Options{Priority: -1, Delay: time.Hour, ExpiresIn: 2 * time.Hour,
		Creator: "go", Tip: big.NewInt(5), MaxTip: big.NewInt(10), DeadlineBlock: 4e9, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}))
	t := must(txrelay.Status(ctx, db, id))
	check(t.Stage == "outbox" && t.Outcome == "" && t.Creator == "go" && t.Tip == "5" && time.Since(t.CreatedAt) < time.Hour, t)
	check(must(txrelay.Bump(ctx, db, id, big.NewInt(7))) == "queued")
	check(must(txrelay.Cancel(ctx, db, id)) == "cancelled")
	again := must(txrelay.Retry(ctx, db, id, txrelay.Options{Deadline: time.Now().Add(2 * time.Hour)}))
	check(must(txrelay.Status(ctx, db, again)).Stage == "outbox" && *must(txrelay.Status(ctx, db, id)).RetriedAs == again)
	check(must(txrelay.Cancel(ctx, db, again)) == "cancelled")
	check(must(txrelay.Status(ctx, db, 1<<60)) == nil)
	return []int64{id, again}
}

// A bell that rings at each notification of a channel.
func bell(channel string) txrelay.Wake {
	wake := make(chan struct{}, 1)
	listener := pq.NewListener(os.Getenv("DB"), time.Second, time.Minute, nil)
	check(listener.Listen(channel) == nil)
	go func() {
		for range listener.Notify {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}()
	return wake
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	db := must(sql.Open("postgres", os.Getenv("DB")))
	encode(ctx)
	want := map[int64]string{}
	for _, id := range enqueue(ctx, db) {
		want[id] = "ok"
	}
	for _, id := range change(ctx, db) {
		want[id] = "cancelled"
	}
	for id, outcome := range want {
		t := must(txrelay.Wait(ctx, db, id, bell(fmt.Sprintf("tx_ended_%d", id))))
		check(t.Outcome == outcome && (outcome != "ok" || t.Fee != "" && t.BlockNumber != nil), t)
		check(outcome != "ok" || must(txrelay.StatusByHash(ctx, db, t.Hash)).ID == id)
	}
	_, err := txrelay.Wait(ctx, db, 1<<60, nil)
	check(errors.Is(err, txrelay.ErrNotKnown), err)
	got, last := map[int64]string{}, int64(0)
	err = txrelay.Follow(ctx, db, 0, bell("pending_tx_removed"), func(e txrelay.End) error {
		check(!e.Gap && e.Position >= last && got[e.ID] == "", e)
		if last = e.Position; want[e.ID] != "" {
			got[e.ID] = e.Outcome
		}
		if len(got) == len(want) {
			return errDone
		}
		return nil
	})
	check(errors.Is(err, errDone), err)
	for id := range want {
		check(got[id] == want[id], id, got, want)
	}
	ctx2, stop := context.WithCancel(ctx)
	stop()
	check(errors.Is(txrelay.Follow(ctx2, db, txrelay.Now, nil, func(txrelay.End) error { return nil }), context.Canceled))
	ids := []int64{}
	for id := range want {
		ids = append(ids, id)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"ids": ids}) == nil)
}
