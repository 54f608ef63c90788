package txrelay

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Relay is the HTTP interface of a relay (docs/http.md).
type Relay struct {
	URL    string // for example http://127.0.0.1:8080
	Token  string // with the scope enqueue
	Client *http.Client
}

// Problem is an answer of a relay that is an error (RFC 9457).
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string { return fmt.Sprintf("txrelay: %s (status %d)", p.Detail, p.Status) }

// Encode returns the bytes of a call by its name. args: a slice by position, or a map by name.
func (r Relay) Encode(ctx context.Context, account, pallet, name string, args any) ([]byte, error) {
	call := map[string]any{"pallet": pallet, "name": name, "args": args}
	body, err := json.Marshal(map[string]any{"account": account, "dry_run": true, "call": call})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(r.URL, "/")+"/v1/transactions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Content-Type", "application/json")
	client := r.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var made struct {
		Problem
		Call string `json:"call"`
	}
	err = json.NewDecoder(answer.Body).Decode(&made)
	if answer.StatusCode != http.StatusOK || err != nil || made.Call == "" {
		made.Status = answer.StatusCode
		if made.Detail == "" {
			made.Detail = r.URL + " gave no problem in JSON" // a proxy's page
		}
		return nil, &made.Problem
	}
	return hex.DecodeString(strings.TrimPrefix(made.Call, "0x"))
}
