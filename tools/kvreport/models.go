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

// runModels lists the bytes per token of models, a line each. All models are in one table so that
// they can be compared. If a configuration is refused, the others are still listed and the exit
// code is 1.
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
	// Without arguments it lists the built-in models.
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
		c.say(fmt.Sprintf("%d of %d configurations were refused", refused, len(names)))
		return errNo
	}
	return nil
}

// configs returns the configuration files of a path. A file stands for itself. In each directory it
// is config.json, or every NAME_config.json if there is no config.json. A checkpoint has other
// files with that ending, such as tokenizer_config.json; they are skipped.
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
		err = fmt.Errorf("no config.json or NAME_config.json under %s", path)
	}
	return list, err
}
