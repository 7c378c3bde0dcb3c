package clients

import (
	"slices"

	"kvbench/kvbench/params"
)

// Share sets in the plans how many ranks are on this host, where it was a guess, and how many
// directories of all ranks share the filesystem of each of theirs: the free space is theirs
// together. The error is what ranks cannot run that do not share a filesystem, or are so many here.
// Feasible checks the plans again of which more is known now.
func (c *Clients) Share(plans []*params.Values, feasible func(*params.Values) params.Violations,
) error {
	if c == nil {
		return nil
	}
	var wrong params.Violations
	for _, v := range plans {
		if sharing := c.gathered.Sharing; len(sharing) > 0 {
			v.Filesystems, v.FilesystemShares = sharing[0].Filesystems, nil
			for _, s := range sharing {
				v.FilesystemShares = append(v.FilesystemShares, s.Directories)
			}
			// The filesystems of another point of a sweep are not known: each takes as little as if
			// all ranks shared them.
			if !slices.Equal(v.CacheDirs, plans[0].CacheDirs) {
				dirs := max(1, len(v.CacheDirs))
				v.Filesystems, v.FilesystemShares = 0, slices.Repeat([]int{v.Ranks * dirs}, dirs)
			}
			if err := v.CheckFilesystems(); err != nil {
				return err
			}
		}
		if news, bad := v.Meet(c.gathered.Local); news {
			wrong = wrong.Merge(bad).Merge(feasible(v))
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// filesystem is one of the run, with the directories of the ranks on it.
type filesystem struct {
	ranks []int
	dirs  map[int][]int // by rank
}

// filesystems are those of all ranks, by their lowest ranks; none of objects. The leader has
// numbered them in that order, from 1.
func (c *Clients) filesystems() (list []filesystem) {
	for rank, dirs := range c.leader.Sharing() {
		for dir, s := range dirs {
			if s.Filesystem == 0 {
				continue
			}
			for len(list) < s.Filesystem {
				list = append(list, filesystem{dirs: map[int][]int{}})
			}
			f := &list[s.Filesystem-1]
			if len(f.dirs[rank]) == 0 {
				f.ranks = append(f.ranks, rank)
			}
			f.dirs[rank] = append(f.dirs[rank], dir)
		}
	}
	return list
}
