/**
 * A thousand flipped bits and a thousand overwritten blocks, in detections.db and in its log: the scrub finds every one that
 * changes anything, counted here by kind; and after the next start, or a log that was begun anew, all is as it was.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { createPrng, seedKey } from '../../src/generate/prng.ts';
import { openAccess } from '../../src/history/access.ts';
import { rebuildLog } from '../../src/history/rebuild.ts';
import { type ScrubResult, scrub } from '../../src/history/scrub.ts';
import { describeFindings } from '../../src/history/scrub-findings.ts';
import { listSegments } from '../../src/history/segment.ts';
import { noteDamage } from '../../src/store/damage.ts';
import { noteIdentity } from '../../src/store/file-identity.ts';
import { assertSameContent, type Content, contentOfDetections } from '../support/database-content.ts';
import { createHistory, type History } from '../support/history.ts';

const TIMES = 1000;
/** Of how many one is also healed. */
const HEALED_EACH = 50;
const BLOCK_BYTES = 64;
const KINDS = ['bit', 'block'] as const;

let history: History;
let content: Content;
let database: Buffer;

before(async () => {
  history = await createHistory();
  const rows = (from: number, count: number, members = {}) =>
    Array.from({ length: count }, (_, index) => ({
      content_type: index % 3 === 0 ? ('image' as const) : ('text' as const),
      row: {
        subscription_id: 7001 + (index % 2),
        article_id: from + index,
        article_headline: `“ü” ${index}`,
        ...members,
      },
    }));
  history.apply(rows(1, 300), {
    with: (db) =>
      db.exec(`
        INSERT INTO ingest_file (number, name, export, bytes, outcome, taken_at, report)
          VALUES (1, 'newswire.ndjson', 'newswire', 10, 'applied', 1000, '{"rows":3}');
        INSERT INTO export_window (export, window_start, status, since, file)
          VALUES ('newswire', 600000, 'done', 1, 1);`),
  });
  history.apply(rows(1, 60, { strength_score: 90, last_scored_at: '2026-11-20T09:05:00Z' }));
  history.apply(rows(50, 60, { last_scored_at: '2026-11-20T09:06:00Z' }));
  for (let from = 1000; from < 1300; from += 50) history.apply(rows(from, 50));
  history.stop();
  openAccess(history.folder.root, { create: true, operation: { kind: 'test' } }).close();
  content = contentOfDetections(history.folder.root);
  database = readFileSync(history.folder.detections);
});
after(() => history?.delete());

const options = () => ({
  folder: history.folder,
  program: 'test',
  between: async () => {},
  onProgress: () => {},
});

/** Damaged copies of a file, each at another place. */
function* damaged(sound: Buffer, kind: (typeof KINDS)[number], seed: string): Generator<Buffer> {
  const prng = createPrng();
  prng.reseed(seedKey(seed, kind), 0, 0);
  for (let time = 0; time < TIMES; time += 1) {
    const bytes = Buffer.from(sound);
    const length = kind === 'bit' ? 1 : BLOCK_BYTES;
    const at = prng.below(bytes.length - length);
    if (kind === 'bit') bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << prng.below(8)), at);
    else for (let byte = 0; byte < length; byte += 1) bytes.writeUInt8(prng.below(256), at + byte);
    yield bytes;
  }
}

/** How often a scrub found each kind, and how often nothing. */
class Tally {
  readonly counts: Record<string, number> = {};

  add({ findings }: ScrubResult): void {
    const kinds = findings.map(({ kind }) => kind);
    for (const kind of kinds.length === 0 ? ['nothing'] : kinds)
      this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }
}

describe('detections.db', () => {
  for (const kind of KINDS) {
    test(`of ${TIMES} (${kind}), each that changes anything is found, and a start heals it`, async (context) => {
      const tally = new Tally();
      let time = 0;
      for (const bytes of damaged(database, kind, 'scrub-database')) {
        writeFileSync(history.folder.detections, bytes);
        const result = await scrub(options());
        tally.add(result);
        time += 1;
        if (result.findings.length === 0)
          assertSameContent(contentOfDetections(history.folder.root), content);
        if (time % HEALED_EACH !== 0) continue;
        noteDamage(history.folder, describeFindings(result.findings));
        noteIdentity(history.folder.detections);
        await history.restart();
        history.stop();
        assertSameContent(contentOfDetections(history.folder.root), content);
      }
      writeFileSync(history.folder.detections, database);
      noteIdentity(history.folder.detections);
      context.diagnostic(JSON.stringify(tally.counts));
    });
  }
});

describe('the log', () => {
  for (const kind of KINDS) {
    test(`of ${TIMES} (${kind}), each is found, and the log is begun anew`, async (context) => {
      const tally = new Tally();
      const segments = listSegments(history.folder.log).map(({ path }) => ({
        path,
        bytes: readFileSync(path),
      }));
      assert.ok(segments.length > 1);
      let time = 0;
      for (const { path, bytes: sound } of segments)
        for (const bytes of damaged(sound, kind, path.slice(-16))) {
          time += 1;
          // As many of all as of one.
          if (time % segments.length !== 0) continue;
          writeFileSync(path, bytes);
          const result = await scrub(options());
          tally.add(result);
          assert.deepEqual(
            result.findings.map(({ kind: found, count }) => [found, count]),
            [['log damaged', 1]],
            `${path} ${time}`,
          );
          if (time % (HEALED_EACH * segments.length) === 0) await healed(segments);
          writeFileSync(path, sound);
        }
      context.diagnostic(JSON.stringify(tally.counts));
    });
  }
});

/** Begins the log anew, has the database made from it, and puts all back. */
async function healed(segments: readonly { readonly path: string; readonly bytes: Buffer }[]): Promise<void> {
  const { folder } = history;
  const { kept, access_kept } = await rebuildLog(options(), { kind: 'command' }, Date.now());
  rmSync(folder.detections);
  await history.restart();
  history.stop();
  const { log_mark: _, ...found } = contentOfDetections(folder.root);
  const { log_mark: __, ...expected } = content;
  assertSameContent(found, expected);
  for (const path of [kept, access_kept]) if (path !== null) rmSync(path, { recursive: true });
  rmSync(folder.log, { recursive: true });
  mkdirSync(folder.log);
  for (const { path, bytes } of segments) writeFileSync(path, bytes);
  writeFileSync(folder.detections, database);
  noteIdentity(folder.detections);
}
