package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"kvbench/workloads/model"
)

// runModels lists what tokens of models take, a line each. One table of all, because the question
// is often which of them fits a cache. Its answer is no where one of them is not understood, so
// that a script that feeds configurations to a benchmark notices; the others are listed all the
// same.
func runModels(c *Call) error {
	dtype := c.String("kv-dtype", model.OwnType, "")
	args, err := c.parse()
	if err != nil {
		return err
	}
	var names []string
	for _, arg := range args {
		files, err := configs(arg)
		if err != nil {
			return err
		}
		names = append(names, files...)
	}
	// Without files at hand it shows what the built-in ones are.
	if len(args) == 0 {
		for _, m := range model.BuiltIn() {
			names = append(names, m.Key)
		}
	}
	// Columns are as wide as the longest name: paths of checkpoints are long, and the path is what
	// tells two files of a model apart.
	w, refused := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0), 0
	fmt.Fprintln(w, "model\tB per token\tB per sequence\ttype\tattention: layers × bytes, source")
	for _, name := range names {
		m, err := model.Find(name, nil)
		if err == nil {
			m, err = m.In(*dtype)
		}
		if err != nil {
			// The line has the name already, and a reason may be several lines.
			reason := strings.TrimPrefix(err.Error(), "model configuration "+name+": ")
			fmt.Fprintf(w, "%s\trefused: %s\n", name, strings.ReplaceAll(reason, "\n", "; "))
			refused++
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s: %s\n", name, m.BytesPerToken(), m.FixedBytes(),
			cmp.Or(m.StoredAs, m.DType, "float16"), m.Attention, m.Arithmetic())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if refused > 0 {
		c.say(fmt.Sprintf("%d of %d models are not understood", refused, len(names)))
		return errNo
	}
	return nil
}

// configs are the configurations that a path means: the file, or in each directory below it
// config.json, else all NAME_config.json, as collections of them name them. A checkpoint has
// others that end so and are of other things, such as tokenizer_config.json.
func configs(path string) (list []string, err error) {
	checkpoint := ""
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, dir := filepath.Base(file), filepath.Dir(file)
		if name == "config.json" {
			checkpoint = dir
		}
		// WalkDir goes by name: config.json comes before generation_config.json.
		other := dir == checkpoint || strings.HasSuffix(name, "quant_config.json")
		if file == path || name == "config.json" ||
			strings.HasSuffix(name, "_config.json") && !other {
			list = append(list, file)
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no config.json", path)
	}
	return list, err
}
