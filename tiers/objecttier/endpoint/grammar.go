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

// Most is the largest number of endpoints, so that a typing error in a range does not make millions.
const Most = 256

// FilePrefix marks the name of a file of URLs in the place of a list of URLs.
const FilePrefix = "file:"

var (
	// comment is a # that begins a line or follows a space, with the rest of the line.
	comment = regexp.MustCompile(`(^|[ \t])#.*`)
	// password is the part of a URL from the scheme to the last @.
	password = regexp.MustCompile(`^([a-z]*://)?.*@`)
	numbers  = regexp.MustCompile(`^(\d{1,9})\.\.\.(\d{1,9})$`)
)

// Parse reads URLs separated by commas, or file:PATH. A URL is http(s)://host[:port]. {a...b} in a URL
// stands for all whole numbers from a to b, with the width of a if a has leading zeros. Several ranges
// stand for all combinations, and the last range changes fastest. A file has a URL in each line, and
// comments begin with #. The error names all wrong URLs.
func Parse(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	path, isFile := strings.CutPrefix(text, FilePrefix)
	if !isFile {
		return parse(strings.Split(text, ","), "URL")
	}
	lines, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of endpoints: %w", err)
	}
	urls, err := parseLines(lines)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return urls, nil
}

// parseLines reads the URLs of a file.
func parseLines(text []byte) ([]string, error) {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = comment.ReplaceAllString(line, "")
	}
	return parse(lines, "line")
}

// parse reads URLs in numbered places. It skips empty lines of a file. Equal URLs are an error, because
// their host would get twice its share and have two counts of failures.
func parse(items []string, place string) (urls []string, err error) {
	var errs []error
	seen := map[string]int{}
	for i, item := range items {
		if item = strings.TrimSpace(item); item == "" && place == "line" {
			continue
		}
		shown, expanded, err := item, []string(nil), error(nil)
		if strings.Contains(item, "@") { // first, so that no error quotes a part of the password
			err = errors.New("must not hold user:password@; keys come from AWS_ACCESS_KEY_ID " +
				"and AWS_SECRET_ACCESS_KEY or a profile")
		} else {
			expanded, err = expand(item, Most-len(urls))
		}
		for _, text := range expanded {
			u, wrong := check(text)
			if before, twice := seen[u]; wrong == nil && twice {
				wrong = fmt.Errorf("the same as %s %d", place, before)
			}
			if wrong != nil {
				shown, err = text, wrong
				break // one error is enough for a range
			}
			seen[u] = i + 1
			urls = append(urls, u)
		}
		if err != nil {
			shown = password.ReplaceAllString(shown, "${1}****@")
			errs = append(errs, fmt.Errorf("%s %d (%.200s): %w", place, i+1, shown, err))
		}
	}
	if len(errs)+len(urls) == 0 {
		return nil, errors.New("no URL in it")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return urls, nil
}

// check returns the URL in lower case and without a slash at its end. It refuses hosts that net/url
// accepts but that cannot exist, because they would fail at the first request.
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
	case len(u.Path) > 1 || strings.ContainsAny(text, "?#"):
		return "", errors.New("must end behind host and port: bucket and prefix belong into " +
			"-cache-dir s3://BUCKET/PREFIX")
	case strings.ContainsAny(u.Hostname(), " \t{}*?'\"<>|\\%"):
		return "", errors.New("is no host name")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if strings.HasSuffix(u.Host, ":") || u.Port() != "" && (err != nil || port == 0) {
		return "", errors.New("has a port outside of 1…65535")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// expand replaces the ranges of a URL, the first range first. It makes at most the given number of URLs.
func expand(text string, most int) (urls []string, err error) {
	head, rest, found := strings.Cut(text, "{")
	inside, tail, closed := strings.Cut(rest, "}")
	if !found {
		switch {
		case strings.Contains(text, "}"):
			return nil, errors.New("has a } without its {")
		case most < 1:
			return nil, fmt.Errorf("there are more than %d endpoints", Most)
		}
		return []string{text}, nil
	}
	ends := numbers.FindStringSubmatch(inside)
	switch {
	case !closed:
		return nil, errors.New("has a { without its }")
	case ends == nil:
		return nil, fmt.Errorf("{%s} is no range: write two whole numbers with three dots "+
			"between them, as in {1...4}", inside)
	}
	from, _ := strconv.Atoi(ends[1])
	to, _ := strconv.Atoi(ends[2])
	if to < from {
		return nil, fmt.Errorf("{%s} falls: write {%d...%d}", inside, to, from)
	}
	width := 0
	if strings.HasPrefix(ends[1], "0") { // n08, n09, n10: names that sort
		width = len(ends[1])
	}
	for n := from; n <= to; n++ { // the first URL beyond the limit ends the loop
		more, err := expand(fmt.Sprintf("%s%0*d%s", head, width, n, tail), most-len(urls))
		if err != nil {
			return nil, err
		}
		urls = append(urls, more...)
	}
	return urls, nil
}

// Source is the source of a run's endpoints.
type Source struct {
	URLs    []string
	From    string   // "-s3-endpoint", the name of a variable, or "the region" without either
	Ignored []string // other variables that are set but ignored
}

// fileSource is the variable with the path of a file of URLs.
const fileSource = "S3_ENDPOINT_FILE"

// sources are the environment's variables in order: those of the Python benchmark, then of the SDKs.
var sources = []string{"S3_ENDPOINT_URIS", "S3_ENDPOINT_TEMPLATE", fileSource,
	"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"}

// Find returns all endpoints of the first source with a value: first the flag, given, then the
// environment, then Amazon's endpoint of the region. A wrong value is an error, because the next source
// may be another store than the user wants.
func Find(given, region string, getenv func(string) string) (s Source, err error) {
	// As in the SDKs, spaces around a value are ignored, and an empty variable counts as unset.
	text := strings.TrimSpace(given)
	if text != "" {
		s.From = "-s3-endpoint"
	}
	for _, name := range sources {
		value := strings.TrimSpace(getenv(name))
		if value != "" && text != "" {
			s.Ignored = append(s.Ignored, name)
		} else if value != "" {
			text, s.From = value, name
		}
	}
	switch s.From {
	case "":
		text, s.From = "https://s3."+region+".amazonaws.com", "the region"
	case fileSource:
		text = FilePrefix + strings.TrimPrefix(text, FilePrefix)
	}
	if s.URLs, err = Parse(text); err != nil {
		return s, fmt.Errorf("%s: %w", s.From, err)
	}
	return s, nil
}
