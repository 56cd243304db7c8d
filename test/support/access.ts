/** Opens access.db for tests, and reads segments of its log. */

import { type OpenAccessOptions, openAccess as open } from '../../src/auth/open-access.ts';
import { decodeLines } from '../../src/log/frame.ts';
import { FrameReader } from '../../src/log/segment.ts';
import type { Database } from '../../src/store/database.ts';

export function openAccess(root: string, options: Partial<OpenAccessOptions> = {}): Database {
  return open(root, { operation: { kind: 'test' }, ...options });
}

/** All lines of a segment of a log. */
export function textOfSegment(path: string): string {
  const reader = new FrameReader(path);
  const lines: string[] = [];
  for (let frame = reader.next(); frame !== null; frame = reader.next())
    lines.push(...decodeLines(frame.packed));
  return lines.join('\n');
}
