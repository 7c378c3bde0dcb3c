package params

import (
	_ "embed"
	"flag"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
)

//go:embed keys.txt
var keysText string

// key is a line of keys.txt, as a parameter without its value.
type key struct {
	parameter
	field, limits string
}

// models is the section of keys.txt with the keys of one model.
const models = sectionModels + ".*."

// keyTable are the lines of keys.txt, those of models apart.
var keyTable, modelTable = func() (list, ofModels []key) {
	var section string
	var heard []hearing
	for line := range strings.Lines(keysText) {
		columns := strings.Split(strings.TrimSpace(line), " |")
		if name, is := strings.CutPrefix(columns[0], "## "); is {
			section, heard = strings.TrimPrefix(name+".", "."), hearings(columns[1])
			continue
		} else if len(columns) < 3 {
			continue // a comment
		}
		k := key{parameter{name: section + columns[0], is: []string{profileKey}, heard: heard},
			strings.TrimSpace(columns[1]), strings.TrimSpace(columns[2])}
		switch section {
		case models:
			k.is, k.name = nil, columns[0]
			ofModels = append(ofModels, k)
			continue
		case "":
			k.is, k.help, k.limits = []string{profileKey, idle}, k.limits, ""
		}
		list = append(list, k)
	}
	return list, ofModels
}()

// big bounds what is only called positive, so that products of two stay inside 64 bits.
const big = math.MaxInt32

// bind is the value of a key on its field below root.
func (k key) bind(root reflect.Value) flag.Value {
	if k.limits == "" { // without effect, but of a kind
		if k.field == "whole" {
			return integer(0, new(int), 0, endless)
		}
		return number(new(float64), 0, unbounded)
	}
	at := root
	for name := range strings.SplitSeq(k.field, ".") {
		if i, err := strconv.Atoi(name); err == nil {
			at = reflect.Indirect(at).Index(i)
		} else {
			at = reflect.Indirect(at).FieldByName(name)
		}
	}
	words := append(strings.Fields(k.limits), "", "")
	low, high := limit(words[0]), limit(words[1])
	whole, fraction := integer(0, new(int), int(low), int(high)), number(nil, low, high)
	switch to := reflect.Indirect(at).Addr().Interface().(type) {
	case *int:
		return integer(0, to, int(low), int(high))
	case *int64:
		return integer(0, to, int64(low), int64(high))
	case *float64:
		return number(to, low, high)
	case *time.Duration:
		unit, _ := time.ParseDuration("1" + words[2])
		return scaled(to, unit, low, high)
	case *[]int:
		return several(to, whole)
	case *[2]int:
		return bounds(to, whole)
	case *[2]float64:
		return bounds(to, fraction)
	case *model.Attention:
		return word((*string)(to))
	case *string:
		if k.limits != "text" {
			return oneOf(to, strings.Fields(k.limits)...)
		}
		return word(to)
	}
	return nil // TestEveryLineOfTheTablesIsRead
}

// limit is a number of keys.txt, or the name of one.
func limit(text string) float64 {
	switch text {
	case "tokens":
		return workloads.MaxTokens
	case "big":
		return big
	}
	x, _ := strconv.ParseFloat(text, 64)
	return x
}

// newValues are empty values with the users of the Python benchmark, which are MLPerf's; paths mean
// the directory base.
func newValues(base string) *Values {
	v := &Values{base: base, Profile: profile.Default(),
		timing: [3]time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond}}
	v.rows = table(v)
	root := reflect.ValueOf(struct {
		Profile   *profile.Profile
		Timing    *[3]time.Duration
		Retrieval *string
	}{&v.Profile, &v.timing, &v.retrieval})
	for _, k := range keyTable {
		k.value = k.bind(root)
		v.keys = append(v.keys, k.parameter)
	}
	return v
}

// modelKeys are the keys of one model in model_configs.
func modelKeys(section string, m *model.Model) (list []parameter) {
	for _, k := range modelTable {
		k.value = k.bind(reflect.ValueOf(m))
		k.name = section + "." + k.name
		list = append(list, k.parameter)
	}
	return list
}
