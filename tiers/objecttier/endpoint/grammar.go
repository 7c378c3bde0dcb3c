package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Most is how many endpoints there may be: more than any client is told to use, and few enough that
// a slip in a range does not make millions.
const Most = 256

// FilePrefix begins what names a file of URLs in the place of a list.
const FilePrefix = "file:"

// Parse reads a list of URLs with commas between them, or file:PATH. Each is
// http(s)://host[:port] and nothing more; {a...b} stands for all whole numbers from a to b, as wide
// as a where that has leading zeros, and several in one URL for all combinations, the last one
// fastest. An error says which URL it is about, and all that are wrong are told.
func Parse(text string) ([]string, error) {
	if path, ok := strings.CutPrefix(strings.TrimSpace(text), FilePrefix); ok {
		return ReadFile(path)
	}
	var items []item
	for i, url := range strings.Split(text, ",") {
		items = append(items, item{fmt.Sprintf("URL %d", i+1), strings.TrimSpace(url)})
	}
	return expandAll(items)
}

// ReadFile reads a file with a URL, which may have ranges, in each line. What follows a # that
// begins a line or comes after a space is a comment; lines without anything else are skipped.
func ReadFile(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of endpoints: %w", err)
	}
	urls, err := parseLines(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return urls, nil
}

// parseLines is ReadFile without the file.
func parseLines(text []byte) ([]string, error) {
	var items []item
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if i := strings.IndexByte(line, '#'); i == 0 || i > 0 && strings.ContainsRune(" \t",
			rune(line[i-1])) {
			line = line[:i]
		}
		if line = strings.TrimSpace(line); line != "" {
			items = append(items, item{fmt.Sprintf("line %d", n), line})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return expandAll(items)
}

// item is a URL as it was written, and where: in a list of a hundred "is no URL" helps nobody.
type item struct{ place, text string }

// expandAll is all of the items' URLs, or what is wrong with each of them that is. Two that are the
// same would have twice the share of the others, and count failures for one host apart.
func expandAll(items []item) (urls []string, err error) {
	var errs []error
	seen := map[string]string{}
	for _, it := range items {
		// Before anything looks at it: errors quote what they could not read, and that may be a
		// part of a password.
		if strings.Contains(it.text, "@") {
			errs = append(errs, fmt.Errorf("%s (%s): must not hold user:password@; keys come from "+
				"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile", it.place,
				shown(it.text)))
			continue
		}
		expanded, err := expand(it.text, Most-len(urls))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w", it.place, shown(it.text), err))
			continue
		}
		for _, text := range expanded {
			u, err := check(text)
			if err == nil && seen[u] != "" {
				err = fmt.Errorf("the same as %s", seen[u])
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s (%s): %w", it.place, shown(text), err))
				break // of a range one error is enough
			}
			seen[u] = it.place
			urls = append(urls, u)
		}
	}
	switch {
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	case len(urls) == 0:
		return nil, errors.New("no URL in it")
	}
	return urls, nil
}

// shown is what an error shows of a URL: whatever stands before an @ may be a password.
func shown(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "****" + rest[i:]
	}
	if len(rest) > 200 {
		rest = rest[:200] + "…"
	}
	return scheme + rest
}

// check returns the URL as it is used: without a slash behind it, and in small letters, so that
// the same one looks the same. What the library's parser lets pass and no host is called (a range
// that was not expanded, a space) is refused here: it would show as an error of the first request.
func check(text string) (string, error) {
	if !strings.Contains(text, "://") { // of which the library says something about colons
		return "", errors.New("must begin with http:// or https://")
	}
	u, err := url.Parse(text)
	if err != nil {
		// The library's error repeats the text, which stands before it already.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return "", fmt.Errorf("is no URL: %w", err)
	}
	host, port := u.Hostname(), u.Port()
	n, portErr := strconv.Atoi(port)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("must begin with http:// or https://")
	case host == "":
		return "", errors.New("names no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		u.Opaque != "":
		return "", errors.New("must end behind host and port: bucket and prefix belong into " +
			"-cache-dir s3://BUCKET/PREFIX")
	case strings.ContainsAny(host, " \t{}*?'\"<>|\\%"):
		return "", errors.New("is no host name")
	case strings.HasSuffix(u.Host, ":"), port != "" && (portErr != nil || n < 1 || n > 65535):
		return "", errors.New("has a port outside of 1…65535")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// expand replaces the ranges of a URL, the first one first; most is how many it may become. It is
// asked before they are made: {0...999999} in two places is a slip, and would be a million
// millions.
func expand(text string, most int) ([]string, error) {
	// Brackets of IPv6 addresses are others, so that whatever has braces means a range.
	head, rest, found := strings.Cut(text, "{")
	if !found {
		if strings.Contains(text, "}") {
			return nil, errors.New("has a } without its {")
		}
		if most < 1 {
			return nil, fmt.Errorf("there are more than %d endpoints", Most)
		}
		return []string{text}, nil
	}
	inside, tail, found := strings.Cut(rest, "}")
	if !found {
		return nil, errors.New("has a { without its }")
	}
	numbers, err := numbersOf(inside, most)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, n := range numbers {
		more, err := expand(head+n+tail, most-len(all))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// numbersOf is the range a...b.
func numbersOf(inside string, most int) (numbers []string, err error) {
	a, b, found := strings.Cut(inside, "...")
	if !found {
		return nil, fmt.Errorf("{%s} is no range: write three dots, as in {1...4}", inside)
	}
	from, errA := strconv.ParseUint(a, 10, 31)
	to, errB := strconv.ParseUint(b, 10, 31)
	switch {
	case errA != nil || errB != nil:
		return nil, fmt.Errorf("{%s}: a range has two whole numbers, as in {1...4}", inside)
	case to < from:
		return nil, fmt.Errorf("{%s} falls: write {%d...%d}", inside, to, from)
	case to-from >= uint64(max(most, 0)):
		return nil, fmt.Errorf("{%s}: there are more than %d endpoints", inside, Most)
	}
	// Zeros in front are kept: hosts are named n08, n09, n10 where they are to be sorted.
	width := 0
	if strings.HasPrefix(a, "0") && len(a) > 1 {
		width = len(a)
	}
	for n := from; n <= to; n++ {
		numbers = append(numbers, fmt.Sprintf("%0*d", width, n))
	}
	return numbers, nil
}
