package endpoint

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Most is the largest number of endpoints: a slip in a range does not make millions.
const Most = 256

// FilePrefix begins the name of a file of URLs in the place of a list.
const FilePrefix = "file:"

// comment is a # that begins a line or follows a space, with the rest of the line.
var comment = regexp.MustCompile(`(^|[ \t])#.*`)

// Parse reads URLs separated by commas, or file:PATH. A URL is http(s)://host[:port]; {a...b} in it
// stands for all whole numbers from a to b, as wide as a if that has leading zeros. Several ranges
// stand for all combinations, the last one fastest. The error names all wrong URLs.
func Parse(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if path, ok := strings.CutPrefix(text, FilePrefix); ok {
		return ReadFile(path)
	}
	return parse(strings.Split(text, ","), "URL")
}

// ReadFile reads a file with a URL, which may have ranges, in each line. Comments begin with #.
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

func parseLines(text []byte) ([]string, error) {
	return parse(strings.Split(string(text), "\n"), "line")
}

// parse reads URLs that stand in numbered places. Empty lines of a file are skipped. Equal URLs are
// an error: their host would have twice its share, and two counts of failures.
func parse(items []string, place string) (urls []string, err error) {
	var errs []error
	seen := map[string]int{}
	for i, item := range items {
		if place == "line" {
			item = comment.ReplaceAllString(item, "")
		}
		if item = strings.TrimSpace(item); item == "" && place == "line" {
			continue
		}
		wrong := func(text string, err error) {
			errs = append(errs, fmt.Errorf("%s %d (%s): %w", place, i+1, shown(text), err))
		}
		expanded, err := expand(item, Most-len(urls))
		if strings.Contains(item, "@") { // before an error quotes a part of the password
			err = errors.New("must not hold user:password@; keys come from AWS_ACCESS_KEY_ID " +
				"and AWS_SECRET_ACCESS_KEY or a profile")
		}
		if err != nil {
			wrong(item, err)
			continue
		}
		for _, text := range expanded {
			u, err := check(text)
			if before, twice := seen[u]; err == nil && twice {
				err = fmt.Errorf("the same as %s %d", place, before)
			}
			if err != nil {
				wrong(text, err)
				break // one error is enough for a range
			}
			seen[u] = i + 1
			urls = append(urls, u)
		}
	}
	if len(errs) == 0 && len(urls) == 0 {
		errs = append(errs, errors.New("no URL in it"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return urls, nil
}

// password is what stands before the last @ of a URL, without the scheme.
var password = regexp.MustCompile(`^([a-z]*://)?.*@`)

// shown is a URL for an error, without a password and at most 200 bytes long.
func shown(text string) string {
	text = password.ReplaceAllString(text, "${1}****@")
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}

// check returns the URL in small letters and without a slash behind it. It refuses what net/url
// accepts and no host is called, which would fail at the first request.
func check(text string) (string, error) {
	u, err := url.Parse(text)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the text, which the caller shows
	}
	switch {
	case !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://"):
		return "", errors.New("must begin with http:// or https://")
	case err != nil:
		return "", fmt.Errorf("is no URL: %w", err)
	case u.Hostname() == "":
		return "", errors.New("names no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("must end behind host and port: bucket and prefix belong into " +
			"-cache-dir s3://BUCKET/PREFIX")
	case strings.ContainsAny(u.Hostname(), " \t{}*?'\"<>|\\%"):
		return "", errors.New("is no host name")
	}
	port, err := strconv.Atoi(u.Port())
	if strings.HasSuffix(u.Host, ":") ||
		u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return "", errors.New("has a port outside of 1…65535")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// expand replaces the ranges of a URL, the first one first, by at most so many URLs.
func expand(text string, most int) (urls []string, err error) {
	head, rest, found := strings.Cut(text, "{")
	inside, tail, closed := strings.Cut(rest, "}")
	a, b, dots := strings.Cut(inside, "...")
	from, errFrom := strconv.ParseUint(a, 10, 31)
	to, errTo := strconv.ParseUint(b, 10, 31)
	switch {
	case !found && strings.Contains(text, "}"):
		return nil, errors.New("has a } without its {")
	case !found && most < 1, found && closed && errFrom == nil && errTo == nil && to >= from &&
		to-from >= uint64(max(most, 0)):
		return nil, fmt.Errorf("there are more than %d endpoints", Most)
	case !found:
		return []string{text}, nil
	case !closed:
		return nil, errors.New("has a { without its }")
	case !dots:
		return nil, fmt.Errorf("{%s} is no range: write three dots, as in {1...4}", inside)
	case errFrom != nil || errTo != nil:
		return nil, fmt.Errorf("{%s}: a range has two whole numbers, as in {1...4}", inside)
	case to < from:
		return nil, fmt.Errorf("{%s} falls: write {%d...%d}", inside, to, from)
	}
	width := 0
	if strings.HasPrefix(a, "0") { // n08, n09, n10: names that sort
		width = len(a)
	}
	for n := from; n <= to; n++ {
		more, err := expand(fmt.Sprintf("%s%0*d%s", head, width, n, tail), most-len(urls))
		if err != nil {
			return nil, err
		}
		urls = append(urls, more...)
	}
	return urls, nil
}
