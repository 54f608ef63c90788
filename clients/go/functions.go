// Package txrelay is a client of txrelay, a transactional outbox for Substrate chains: enqueue a
// transaction in your own Postgres transaction, and read its outcome. It needs no driver of its own:
// every argument travels as text and is cast in the statement, and a row comes back as JSON.
package txrelay

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Querier is a *sql.Tx, *sql.Conn or *sql.DB of any Postgres driver.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Options of Enqueue and EnqueueMany, as docs/sql.md explains them. A zero value is left out.
type Options struct {
	Key           string // Enqueue and EnqueueSigned alone
	Priority      int64
	NotBefore     time.Time
	Deadline      time.Time
	Delay         time.Duration
	ExpiresIn     time.Duration
	Creator       string
	SpecVersion   int64
	Tip           *big.Int // in planck
	MaxTip        *big.Int
	DeadlineBlock int64
	Retries       int64
	Traceparent   string
	Account       string // EnqueueSigned alone
}

type argument struct{ name, kind, value string }

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func amount(n *big.Int) string {
	if n == nil {
		return ""
	}
	return n.String()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%d microseconds", d.Microseconds())
}

func (o Options) shared() []argument {
	return []argument{
		{"priority", "bigint", number(o.Priority)}, {"not_before", "timestamptz", moment(o.NotBefore)},
		{"deadline", "timestamptz", moment(o.Deadline)}, {"delay", "interval", span(o.Delay)},
		{"expires_in", "interval", span(o.ExpiresIn)}, {"spec_version", "bigint", number(o.SpecVersion)},
		{"tip", "numeric", amount(o.Tip)}, {"max_tip", "numeric", amount(o.MaxTip)},
		{"deadline_block", "bigint", number(o.DeadlineBlock)}, {"retries", "bigint", number(o.Retries)},
		{"creator", "text", o.Creator}, {"traceparent", "text", o.Traceparent},
	}
}

// The first column of the one row.
func one(ctx context.Context, q Querier, query string, values ...any) (string, error) {
	rows, err := q.QueryContext(ctx, query, values...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var answer sql.NullString
	if rows.Next() {
		if err := rows.Scan(&answer); err != nil {
			return "", err
		}
	}
	return answer.String, rows.Err()
}

// first: expressions over values; options are named.
func call(ctx context.Context, q Querier, name string, first []string, values []any, options []argument) (string, error) {
	for _, o := range options {
		if o.value == "" {
			continue
		}
		values = append(values, o.value)
		first = append(first, fmt.Sprintf("%s => $%d::text::%s", o.name, len(values), o.kind))
	}
	return one(ctx, q, "SELECT txrelay."+name+"("+strings.Join(first, ", ")+")::text", values...)
}

func id(text string, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Enqueue stores a transaction in the database transaction that q is in, and returns its id.
func Enqueue(ctx context.Context, q Querier, account string, bytes []byte, o Options) (int64, error) {
	options := append([]argument{{"key", "text", o.Key}}, o.shared()...)
	return id(call(ctx, q, "enqueue", []string{"$1::text", "decode($2::text, 'hex')"}, []any{account, hex.EncodeToString(bytes)}, options))
}

// EnqueueMany stores several calls; the options hold for each. keys: one for each call, or nil.
func EnqueueMany(ctx context.Context, q Querier, account string, calls [][]byte, keys []string, o Options) ([]int64, error) {
	const array = "ARRAY(SELECT %s FROM jsonb_array_elements_text($%d::text::jsonb) WITH ORDINALITY e (e, n) ORDER BY n)"
	digits := make([]string, len(calls))
	for i, c := range calls {
		digits[i] = hex.EncodeToString(c)
	}
	list, err := json.Marshal(digits)
	if err != nil {
		return nil, err
	}
	first := []string{"$1::text", fmt.Sprintf(array, "decode(e, 'hex')", 2)}
	values := []any{account, string(list)}
	if keys != nil {
		if list, err = json.Marshal(keys); err != nil {
			return nil, err
		}
		first, values = append(first, fmt.Sprintf(array, "e", 3)), append(values, string(list))
	}
	text, err := call(ctx, q, "enqueue_many", first, values, o.shared())
	if err != nil {
		return nil, err
	}
	ids := []int64{}
	for _, part := range strings.FieldsFunc(strings.Trim(text, "{}"), func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, n)
	}
	return ids, nil
}

// EnqueueSigned stores an extrinsic that was signed elsewhere. Key, Creator, Account and Traceparent
// of the options are used.
func EnqueueSigned(ctx context.Context, q Querier, extrinsic []byte, o Options) (int64, error) {
	return id(call(ctx, q, "enqueue_signed", []string{"decode($1::text, 'hex')"}, []any{hex.EncodeToString(extrinsic)}, []argument{
		{"key", "text", o.Key}, {"creator", "text", o.Creator}, {"account", "text", o.Account}, {"traceparent", "text", o.Traceparent}}))
}

// Cancel returns "cancelled", "requested" or "finished".
func Cancel(ctx context.Context, q Querier, tx int64) (string, error) {
	return call(ctx, q, "cancel", []string{"$1::text::bigint"}, []any{number(tx)}, nil)
}

// Bump raises the tip: "queued", "requested" or "finished". nil: the next step of the account's policy.
func Bump(ctx context.Context, q Querier, tx int64, tip *big.Int) (string, error) {
	return call(ctx, q, "bump", []string{"$1::text::bigint"}, []any{number(tx)}, []argument{{"tip", "numeric", amount(tip)}})
}

// Retry enqueues a transaction that ended without effect once more, and returns the new id. Deadline
// and DeadlineBlock of the options are used.
func Retry(ctx context.Context, q Querier, tx int64, o Options) (int64, error) {
	return id(call(ctx, q, "retry", []string{"$1::text::bigint"}, []any{number(tx)}, []argument{
		{"deadline", "timestamptz", moment(o.Deadline)}, {"deadline_block", "bigint", number(o.DeadlineBlock)}}))
}

// Transaction is a row of txrelay.transactions (docs/sql.md). Amounts are planck, as digits: they may
// not fit a number. "" and nil: none.
type Transaction struct {
	ID          int64     `json:"id"`
	Account     string    `json:"account"`
	Stage       string    `json:"stage"`
	State       string    `json:"state"`
	Outcome     string    `json:"outcome"`
	Waits       string    `json:"waits"`
	Nonce       *int64    `json:"nonce"`
	Hash        string    `json:"hash"`
	BlockNumber *int64    `json:"block_number"`
	BlockHash   string    `json:"block_hash"`
	Tip         string    `json:"tip"`
	Fee         string    `json:"fee"`
	Error       string    `json:"error"`
	Key         string    `json:"key"`
	Creator     string    `json:"creator"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	RetryOf     *int64    `json:"retry_of"`
	RetriedAs   *int64    `json:"retried_as"`
	Traceparent string    `json:"traceparent"`
}

const status = "SELECT (to_jsonb(t) || jsonb_build_object('tip', t.tip::text, 'fee', t.fee::text))::text FROM txrelay.status("

func found(text string, err error) (*Transaction, error) {
	if err != nil || text == "" {
		return nil, err
	}
	t := &Transaction{}
	return t, json.Unmarshal([]byte(text), t)
}

// Status returns the transaction; nil: it is not known.
func Status(ctx context.Context, q Querier, tx int64) (*Transaction, error) {
	return found(one(ctx, q, status+"$1::text::bigint) t", strconv.FormatInt(tx, 10)))
}

// StatusByHash returns the transaction for which an extrinsic with this hash ("0x..") was signed.
func StatusByHash(ctx context.Context, q Querier, hash string) (*Transaction, error) {
	return found(one(ctx, q, status+"hash => $1::text) t", hash))
}

// ErrorCode returns the SQLSTATE of an error, such as TR012 (docs/errors.md), or "".
func ErrorCode(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
