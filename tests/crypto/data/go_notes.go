// Writes go_notes.json: what Go's own golang.org/x/mod/sumdb makes of notes and trees. Run it where Go is:
//
//	apt-get install golang-go golang-golang-x-mod-dev
//	GO111MODULE=off GOPATH=/usr/share/gocode go run go_notes.go > go_notes.json
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type leaves []tlog.Hash

func (stored leaves) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found[i] = stored[index]
	}
	return found, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// zeros is a source of chance without any: every key is made of the same byte.
type zeros byte

func (b zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func main() {
	var signers []note.Signer
	var vkeys, skeys []string
	for i, name := range []string{"ci.example/recorder", "review.example/ann"} {
		skey, vkey, err := note.GenerateKey(zeros(i+1), name)
		must(err)
		signer, err := note.NewSigner(skey)
		must(err)
		signers, vkeys, skeys = append(signers, signer), append(vkeys, vkey), append(skeys, skey)
	}
	text := "toolcassette/1/" + "00112233445566778899aabbccddeeff" + "\n4\n" +
		base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n"
	one, err := note.Sign(&note.Note{Text: text}, signers[0])
	must(err)
	two, err := note.Sign(&note.Note{Text: text}, signers...)
	must(err)

	// Trees over the leaves sha256(0x00 || decimal number), of every size up to 70; a proof for each leaf of some.
	var stored leaves
	roots := []string{}
	proofs := map[string][]string{}
	for size := int64(1); size <= 70; size++ {
		hashes, err := tlog.StoredHashes(size-1, []byte(fmt.Sprint(size-1)), stored)
		must(err)
		stored = append(stored, hashes...)
		root, err := tlog.TreeHash(size, stored)
		must(err)
		roots = append(roots, base64.StdEncoding.EncodeToString(root[:]))
		if size > 17 && size != 70 {
			continue
		}
		for n := int64(0); n < size; n++ {
			proof, err := tlog.ProveRecord(size, n, stored)
			must(err)
			words := []string{}
			for _, hash := range proof {
				words = append(words, base64.StdEncoding.EncodeToString(hash[:]))
			}
			proofs[fmt.Sprintf("%d/%d", n, size)] = words
		}
	}
	if sum := sha256.Sum256([]byte("\x000")); stored[0] != tlog.Hash(sum) {
		panic("a leaf is not what this file says")
	}
	out := json.NewEncoder(os.Stdout)
	must(out.Encode(map[string]any{
		"text": text, "vkeys": vkeys, "skeys": skeys, "one": string(one), "two": string(two),
		"roots": roots, "proofs": proofs,
	}))
}
