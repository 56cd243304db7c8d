/** The newest entries of a log, by their commit lines. */
import { type Commit, parseCommit } from './format.ts';
import { decodeFrameHeader, decodeLines, FRAME_HEADER_BYTES } from './frame.ts';
import { FrameReader, listSegments, type Segment } from './segment.ts';

/**
 * The commit lines of a log, newest first, without reading other frames.
 *
 * @param before only entries with smaller numbers; @param limit the most to return
 * @param segmentsMax the most segments to search, so that a call is short however long the log is
 * @returns `next`: the `before` of the next call; null at the log's beginning
 */
export function newestCommits(
  folder: string,
  { before, limit, segmentsMax }: { before: number; limit: number; segmentsMax: number },
  isWanted: (commit: Commit) => boolean,
): { readonly commits: Commit[]; readonly next: number | null } {
  const segments = listSegments(folder).filter(({ firstEntry }) => firstEntry < before);
  const commits: Commit[] = [];
  for (const [index, segment] of segments.toReversed().entries()) {
    const own = commitsIn(segment).filter((commit) => commit.entry < before && isWanted(commit));
    commits.push(...own.toReversed().slice(0, limit - commits.length));
    const last = commits.at(-1);
    if (commits.length === limit && last !== undefined)
      return { commits, next: last.entry === segments[0]?.firstEntry ? null : last.entry };
    if (index + 1 === segmentsMax && index + 1 < segments.length)
      return { commits, next: segment.firstEntry };
  }
  return { commits, next: null };
}

/** Oldest first, up to the first frame that is not intact. */
function commitsIn({ path }: Segment): Commit[] {
  using reader = new FrameReader(path);
  const commits: Commit[] = [];
  for (let at = 0; ; ) {
    const header = decodeFrameHeader(reader.read(at, FRAME_HEADER_BYTES));
    if (header === null) return commits;
    const frame = header.kind === 'commit' ? reader.frameAt(at) : null;
    if (header.kind === 'commit' && frame === null) return commits;
    if (frame !== null) commits.push(parseCommit(decodeLines(frame.packed).at(-1) ?? ''));
    at += FRAME_HEADER_BYTES + header.length;
  }
}
