package store

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// mostEndpoints bounds the endpoints, so that a typing error in a range does not make millions.
const mostEndpoints = 256

// filePrefix marks the name of a file of URLs in the place of a list of URLs.
const filePrefix = "file:"

var (
	// comment is a # that begins a line or follows a space, with the rest of the line.
	comment = regexp.MustCompile(`(?m)(^|[ \t])#.*`)
	// password is the part of a URL from the scheme to the last @.
	password = regexp.MustCompile(`^([a-z]*://)?.*@`)
	numbers  = regexp.MustCompile(`\{(\d{1,9})\.\.\.(\d{1,9})\}`) // a range
)

// parse reads URLs separated by commas, or file:PATH. A URL is http(s)://host[:port]. {a...b} in a URL
// stands for all whole numbers from a to b, with the width of a if a has leading zeros. Several ranges
// stand for all combinations, and the last range changes fastest. A file has a URL in each line, and
// comments begin with #. The error names all wrong URLs. Equal URLs are an error, because their host would
// get twice its share and have two counts of failures.
func parse(text string) (urls []string, err error) {
	text = strings.TrimSpace(text)
	items, place := strings.Split(text, ","), "URL"
	path, isFile := strings.CutPrefix(text, filePrefix)
	if isFile {
		lines, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the list of endpoints: %w", err)
		}
		items, place = strings.Split(comment.ReplaceAllString(string(lines), ""), "\n"), path+": line"
	}
	var errs []error
	seen := map[string]int{}
	for i, item := range items {
		if item = strings.TrimSpace(item); item == "" && isFile {
			continue
		}
		found, err := expand(item)
		for k := 0; err == nil && k < len(found); k++ {
			found[k], err = check(found[k])
			if before := seen[found[k]]; err == nil && before > 0 {
				err = fmt.Errorf("the same as %s %d", place, before)
			}
			seen[found[k]] = i + 1
		}
		if urls = append(urls, found...); err == nil && len(urls) > mostEndpoints {
			err = fmt.Errorf("there are more than %d endpoints", mostEndpoints)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %d (%.200s): %w", place, i+1,
				password.ReplaceAllString(item, "${1}****@"), err))
		}
	}
	if len(errs)+len(urls) == 0 {
		return nil, fmt.Errorf("%s: no URL in it", path)
	}
	return urls, errors.Join(errs...)
}

// expand replaces the ranges of a URL, the first range first.
func expand(text string) (urls []string, _ error) {
	m := numbers.FindStringSubmatch(text)
	switch {
	case strings.Contains(text, "@"): // first, so that no error quotes a part of the password
		return nil, errors.New("must not hold user:password@; keys come from AWS_ACCESS_KEY_ID " +
			"and AWS_SECRET_ACCESS_KEY or a profile")
	case m == nil && strings.ContainsAny(text, "{}"):
		return nil, errors.New("has a { or } that is not of a range: write two whole numbers with " +
			"three dots between them, as in {1...4}")
	case m == nil:
		return []string{text}, nil
	}
	from, _ := strconv.Atoi(m[1])
	to, _ := strconv.Atoi(m[2])
	if to < from {
		return nil, fmt.Errorf("%s falls: write {%d...%d}", m[0], to, from)
	}
	width := 0
	if strings.HasPrefix(m[1], "0") { // n08, n09, n10: names that sort
		width = len(m[1])
	}
	for n := from; n <= to && len(urls) <= mostEndpoints; n++ {
		rest, err := expand(strings.Replace(text, m[0], fmt.Sprintf("%0*d", width, n), 1))
		if err != nil {
			return nil, err
		}
		urls = append(urls, rest...)
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

// FindEndpoints returns all endpoints of the first source with a value: first the flag, given, then the
// environment, then Amazon's endpoint of the region. A wrong value is an error, because the next source
// may be another store than the user wants.
func FindEndpoints(given, region string, getenv func(string) string) (s Source, err error) {
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
		text = filePrefix + strings.TrimPrefix(text, filePrefix)
	}
	if s.URLs, err = parse(text); err != nil {
		return s, fmt.Errorf("%s: %w", s.From, err)
	}
	return s, nil
}
