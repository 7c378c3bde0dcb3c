package endpoint

import (
	"fmt"
	"strings"
)

// Source is where the endpoints of a run came from.
type Source struct {
	URLs    []string
	From    string   // "-s3-endpoint", the name of a variable, or "the region" without either
	Ignored []string // variables that are set, too, and do not count
}

// fileSource is the variable that holds the path of a file of URLs.
const fileSource = "S3_ENDPOINT_FILE"

// sources are the environment's, in their order: the variables of the Python benchmark and of the
// SDKs.
var sources = []string{"S3_ENDPOINT_URIS", "S3_ENDPOINT_TEMPLATE", fileSource,
	"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"}

// Find returns all endpoints of the first source with a value: given, which is the flag's, then the
// environment, then Amazon's endpoint of the region. A wrong value is an error: the next source
// would be another store than the one that was meant.
func Find(given, region string, getenv func(string) string) (s Source, err error) {
	// As in the SDKs, spaces around a value do not count, and an empty variable is not set.
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
