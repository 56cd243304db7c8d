/** A scrub finds each kind of damage, counts and names it. */
import assert from 'node:assert/strict';
import fs, { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { withFailingReads } from '../support/failing-reads.ts';
import { createHistory, type History } from '../support/history.ts';
import { assertClean, CLEAN, FIRST, fill, INDEX, scrubbed } from '../support/scrub.ts';

describe('damage is found', () => {
  let history: History;
  let sound: Buffer;
  before(async () => {
    history = await createHistory();
    await fill(history);
    history.stop();
    sound = readFileSync(history.folder.detections);
  });
  after(() => history.delete());

  async function found(change: () => void): Promise<Record<string, { count: number; first: string }>> {
    change();
    const { findings } = await scrubbed(history);
    writeFileSync(history.folder.detections, sound);
    return Object.fromEntries(
      findings.map(({ kind, count, first }) => [kind, { count, first: first[0] ?? '' }]),
    );
  }

  const changed = (sql: string) => () => {
    const db = openDatabase(history.folder.detections, 'write', DETECTIONS_SCHEMA);
    try {
      db.exec(sql);
    } finally {
      db.close();
    }
  };

  test('the database: each kind, counted and named', async () => {
    const cases: [what: string, change: () => void, kind: string, count: number, name: RegExp][] = [
      ['a byte of a text', flipText, 'row differs', 1, /^stream_row place .*: body$/],
      [
        'a row of the stream is gone',
        changed('DELETE FROM stream_row WHERE place = (SELECT min(place) FROM stream_row)'),
        'row missing',
        1,
        /^stream_row place \d+$/,
      ],
      [
        'the last rows of the stream are gone',
        changed(
          'DELETE FROM stream_row WHERE place IN (SELECT place FROM stream_row ORDER BY place DESC LIMIT 700)',
        ),
        'row missing',
        700,
        /^stream_row place \d+$/,
      ],
      [
        'a row of the stream too many',
        changed(`INSERT INTO stream_row SELECT place + 500000, position, version, publisher_id, domain, band, score,
          print, source_hash, article_id, body, checksum FROM stream_row ORDER BY place LIMIT 1`),
        'row too many',
        1,
        /^stream_row place/,
      ],
      [
        'two rows change places',
        changed(`
          UPDATE stream_row SET place = 1 WHERE place = ${FIRST};
          UPDATE stream_row SET place = ${FIRST} WHERE place = ${FIRST} + 1;
          UPDATE stream_row SET place = ${FIRST} + 1 WHERE place = 1;`),
        'row differs',
        1,
        /^stream_row place \d+: position/,
      ],
      [
        'exported_at_given',
        changed("UPDATE detection SET exported_at_given = '2020-01-01T00:00:00Z' WHERE id = 't.7001.1.5'"),
        'row differs',
        1,
        /^detection id t\.7001\.1\.5: exported_at_given$/,
      ],
      [
        'epochs',
        changed("UPDATE detection SET epochs = 1 WHERE id = 't.7001.1.5'"),
        'row differs',
        1,
        /detection id t\.7001\.1\.5: epochs$/,
      ],
      [
        'the record of a file',
        changed('UPDATE ingest_file SET bytes = 11'),
        'row differs',
        1,
        /^ingest_file number 1: bytes$/,
      ],
      [
        'a window',
        changed('DELETE FROM export_window'),
        'row missing',
        1,
        /^export_window export newswire, /,
      ],
      [
        'a head',
        changed('UPDATE stream SET sequence = 1 WHERE ordinal = 2'),
        'row differs',
        1,
        /^stream ordinal 2: sequence$/,
      ],
      [
        'the text of a detection that was scored again',
        changed("UPDATE rescored SET body = replace(body, 'H', 'h')"),
        'row differs',
        1,
        /^rescored place \d+: body$/,
      ],
      [
        'a delivery',
        changed('INSERT INTO delivery (first_position, last_position) VALUES (1, 1)'),
        'row too many',
        1,
        /delivery first_position 1/,
      ],
      [
        'another schema',
        changed('DROP INDEX delivery_by_time'),
        'row missing',
        1,
        /sqlite_schema type index, name delivery_by_time/,
      ],
      ['a page of zeros', () => zeroPage(10), 'database malformed', 1, /malformed/],
      [
        'another id in its mark',
        changed("UPDATE log_mark SET id = 'ffff'"),
        'database malformed',
        1,
        /log_mark/,
      ],
      ['no database', () => rmSync(history.folder.detections), 'database malformed', 1, /missing/],
    ];
    for (const [what, change, kind, count, name] of cases) {
      const findings = await found(change);
      assert.ok((findings[kind]?.count ?? 0) >= count, `${what}: ${JSON.stringify(findings)}`);
      assert.match(findings[kind]?.first ?? '', name, what);
    }
    assert.deepEqual(await found(() => {}), {}, 'no further findings');
  });

  test('an index that lacks a row, or has one too many', async () => {
    const withoutIndex = (sql: string) => () => {
      const define = (definition: string) => {
        const db = openDatabase(history.folder.detections, 'write', DETECTIONS_SCHEMA);
        db.unsafeMode().pragma('writable_schema = ON');
        db.prepare("UPDATE sqlite_schema SET sql = ? WHERE name = 'stream_row_by_position'").run(definition);
        db.close();
      };
      define(`${INDEX} WHERE 0`);
      changed(sql)();
      define(INDEX);
    };
    const less = await found(withoutIndex(`UPDATE stream_row SET position = 99 WHERE place = ${FIRST}`));
    assert.match(less['index disagrees']?.first ?? '', /row \d+ missing from index stream_row_by_position/);
    const more = await found(() => {
      changed(`INSERT INTO stream_row SELECT ${FIRST + 500_000}, 1, version, publisher_id, domain, band, score, print,
        source_hash, article_id, body, checksum FROM stream_row LIMIT 1`)();
      withoutIndex(`DELETE FROM stream_row WHERE place = ${FIRST + 500_000}`)();
    });
    assert.match(more['index disagrees']?.first ?? '', /wrong # of entries in index stream_row_by_position/);
  });

  test('the log: a flipped bit in a closed segment, a missing segment, a missing start or end', async () => {
    const [first, second] = listSegments(history.folder.log);
    const last = listSegments(history.folder.log).at(-1);
    assert.ok(first && second && last && last !== second);
    for (const { path } of [first, second, last]) {
      const bytes = readFileSync(path);
      const damaged = Buffer.from(bytes);
      const at = Math.floor(bytes.length / 2);
      damaged[at] = (damaged[at] ?? 0) ^ 4;
      writeFileSync(path, damaged);
      const { findings, not_compared } = await scrubbed(history);
      assert.deepEqual(
        findings.map(({ kind, count }) => [kind, count]),
        [['log damaged', 1]],
      );
      // In the last segment, the damage may also look like a missing end.
      const expected = path === last.path ? `${path}|ends with entry` : path;
      assert.match(findings[0]?.first[0] ?? '', new RegExp(expected));
      assert.equal(not_compared, 'the log is damaged');
      rmSync(path);
      const gone = await scrubbed(history);
      assert.deepEqual(
        gone.findings.map(({ kind }) => kind),
        ['log damaged'],
        path,
      );
      writeFileSync(path, bytes);
    }
    const both = [first, second].map(({ path }) => ({ path, bytes: readFileSync(path) }));
    for (const { path, bytes } of both) writeFileSync(path, bytes.subarray(0, bytes.length - 1));
    const { findings } = await scrubbed(history);
    assert.equal(findings[0]?.count, 2);
    for (const { path, bytes } of both) writeFileSync(path, bytes);
    await assertClean(history, 'afterwards');
  });

  test('damage of the log that is not there when it is read again is not reported', async () => {
    const { path } = listSegments(history.folder.log)[1] ?? { path: '' };
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 1));
    let good = 0;
    assert.throws(() => {
      for (const _ of entriesAfter(history.folder.log, null)) good += 1;
    }, /is damaged at byte/);
    let step = 0;
    const { findings, not_compared } = await scrubbed(history, async () => {
      step += 1;
      if (step === good + 1) writeFileSync(path, bytes);
    });
    assert.deepEqual({ findings, not_compared }, CLEAN);
  });

  function flipText(): void {
    const bytes = readFileSync(history.folder.detections);
    const at = bytes.indexOf('Headline 77 ');
    bytes.write('h', at);
    writeFileSync(history.folder.detections, bytes);
  }

  function zeroPage(number: number): void {
    const bytes = readFileSync(history.folder.detections);
    bytes.fill(0, (number - 1) * 16_384, number * 16_384);
    writeFileSync(history.folder.detections, bytes);
  }

  test('a database that cannot be opened is reported, but not as damage', async () => {
    const { detections } = history.folder;
    rmSync(detections);
    mkdirSync(detections);
    try {
      await assert.rejects(
        scrubbed(history),
        /cannot read .*detections\.db: unable to open database file\. Nothing was/,
      );
    } finally {
      rmdirSync(detections);
      writeFileSync(detections, sound);
    }
  });

  const scrubbedUnread = (times: number) =>
    withFailingReads(listSegments(history.folder.log)[0]?.path ?? '', times, () => scrubbed(history));

  test('a log read that fails once is reported, but not as damage', async () => {
    const expected = /cannot read .*000000000001\.zst: .*EIO.* Nothing was found to be damaged/;
    await assert.rejects(scrubbedUnread(1), expected);
    await assert.rejects(scrubbedUnread(2), expected, 'if the second read fails, too');
    await assertClean(history, 'afterwards');
  });

  test('a log read that fails repeatedly', async () => {
    const { findings, not_compared } = await scrubbedUnread(Number.POSITIVE_INFINITY);
    assert.deepEqual(
      findings.map(({ kind, count }) => [kind, count]),
      [['log damaged', 1]],
    );
    assert.match(findings[0]?.first[0] ?? '', /^cannot read .*000000000001\.zst: EIO/);
    assert.equal(not_compared, 'the log is damaged');
  });

  test('damage to another segment, but not one that cannot be opened', async () => {
    const [first, second] = listSegments(history.folder.log);
    assert.ok(first && second);
    const { openSync } = fs;
    fs.openSync = (path, ...rest) => {
      if (path === first.path) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE', syscall: 'open' });
      return openSync(path, ...rest);
    };
    syncBuiltinESMExports();
    const bytes = readFileSync(second.path);
    try {
      await assert.rejects(scrubbed(history), /cannot read .*000000000001\.zst: EMFILE\. Nothing was found/);
      writeFileSync(second.path, bytes.subarray(0, bytes.length - 1));
      const { findings } = await scrubbed(history);
      assert.deepEqual(
        findings.map(({ kind, count }) => [kind, count]),
        [['log damaged', 1]],
      );
      assert.match(findings[0]?.first[0] ?? '', new RegExp(second.path));
    } finally {
      fs.openSync = openSync;
      syncBuiltinESMExports();
      writeFileSync(second.path, bytes);
    }
    await assertClean(history, 'afterwards');
  });

  test('leaves no file behind, even if a kill interrupts it', async () => {
    const left = () => readdirSync(history.folder.root).filter((name) => /scratch|-wal|-shm/.test(name));
    assert.deepEqual(left(), []);
    await scrubbed(history, async () =>
      assert.deepEqual(
        left().filter((name) => name.includes('scratch')),
        [],
      ),
    );
  });
});
