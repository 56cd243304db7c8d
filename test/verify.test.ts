/** `wirewatch verify`: whatever is damaged is found, each by its own check, and nothing else is said. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { create } from 'tar';
import { CHECKS, type CheckName, type Finding } from '../src/backup/findings.ts';
import { verify } from '../src/backup/verify.ts';
import { ACCESS_MIGRATIONS } from '../src/store/access-schema.ts';
import type { Database } from '../src/store/database.ts';
import { openDetections } from '../src/store/detections.ts';
import { DETECTIONS_MIGRATIONS } from '../src/store/detections-schema.ts';
import { dataFolder } from '../src/store/folder.ts';
import { openWriter } from '../src/store/writer.ts';
import { formatMs } from '../src/time.ts';
import { type Appliance, startAppliance } from './support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from './support/export-files.ts';

let appliance: Appliance;
let work: string;
/** A stopped installation that is in order. */
let good: string;
let archived: string;
const known = newRow();

before(async () => {
  work = mkdtempSync(join(tmpdir(), 'wirewatch-verify-'));
  appliance = await startAppliance();
  const rows = (count: number, members: Row = {}) => Array.from({ length: count }, () => newRow(members));
  const first = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([known, ...rows(4)]));
  archived = String(first.destination);
  await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson(rows(3)));
  const third = nextWindowMs();
  const rescored = { ...known, strength_score: 12, last_scored_at: formatMs(third) };
  const more = rows(2, { subscription_id: 7002 });
  const { updated } = await appliance.dropped(fileName('newswire', third), ndjson([rescored, ...more]));
  // Only its times differ: the detection is newer than its newest row of the stream.
  const fourth = nextWindowMs();
  const same = { ...rescored, last_scored_at: formatMs(fourth) };
  const again = await appliance.dropped(fileName('newswire', fourth), ndjson([same]));
  assert.deepEqual([updated, again.rescored], [1, 1]);
  await appliance.dropped(fileName('newswire', nextWindowMs()), '{"bad"');
  await appliance.dropped('newswire.backfill-old.ndjson', ndjson(rows(5)));
  await appliance.serving().stop();
  good = join(work, 'good');
  cpSync(appliance.data, good, { recursive: true });
  await appliance.restart();
});
after(async () => {
  await appliance?.stop();
  rmSync(work, { recursive: true, force: true });
});

let copies = 0;

/** What is found in a copy of the good installation after it was damaged. */
async function found(
  damage: (folder: string) => void,
  { hashes = false }: { hashes?: boolean } = {},
): Promise<Finding[]> {
  copies += 1;
  const copy = join(work, `copy-${copies}`);
  cpSync(good, copy, { recursive: true });
  damage(copy);
  const archive = { drop: join(copy, 'drop'), hashes };
  const findings = await verify(dataFolder(copy), { archive, onProgress: () => {} });
  rmSync(copy, { recursive: true });
  return findings.list();
}

const inDetections = (change: (db: Database) => void) => (folder: string) => {
  const db = openDetections(join(folder, 'detections.db'));
  db.pragma('foreign_keys = OFF');
  change(db);
  db.close();
};
const sql = (text: string) => inDetections((db) => db.exec(text));

/** Nothing is found by any check but this one, and this is said. */
function assertOnly(findings: readonly Finding[], check: CheckName, detail: RegExp): void {
  assert.ok(findings.length > 0, 'nothing was found');
  assert.deepEqual([...new Set(findings.map((finding) => finding.check))], [check]);
  assert.match(findings.map((finding) => finding.detail).join('\n'), detail);
  for (const { means, what_to_do } of findings)
    assert.deepEqual(
      { means, what_to_do },
      { means: CHECKS[check].means, what_to_do: CHECKS[check].what_to_do },
    );
}

test('what is in order is found in order, in the data folder beside the running appliance as well', async () => {
  assert.deepEqual(await found(() => {}, { hashes: true }), []);
  const { status, stdout } = appliance.cli(['verify', '--archive', '--json']);
  assert.deepEqual([status, JSON.parse(stdout).ok], [0, true]);
  assert.match(appliance.cli(['verify']).stdout, /is in order\.\n\nChecked: .*sequences.*archive/);
});

const textOf = (findings: readonly Finding[]) => findings.map(({ detail }) => detail).join('\n');

const FIRST_ROW = 'SELECT min(position) FROM stream_row';
const LAST_ROW = 'SELECT max(position) FROM stream_row';

/** Each damages just one thing. */
const DAMAGES: readonly (readonly [
  name: string,
  check: CheckName,
  damage: (folder: string) => void,
  detail: RegExp,
])[] = [
  ['the secret is missing', 'secret', (folder) => rmSync(join(folder, 'secret')), /secret is missing/],
  [
    'the secret has lost its end',
    'secret',
    (folder) => truncateSync(join(folder, 'secret'), 31),
    /has 31 bytes, not 32/,
  ],
  [
    'detections.db is missing',
    'detections.db',
    (folder) => rmSync(join(folder, 'detections.db')),
    /is missing/,
  ],
  [
    'a page of detections.db was overwritten',
    'detections.db',
    (folder) => {
      const path = join(folder, 'detections.db');
      const bytes = readFileSync(path);
      bytes.fill(0x5a, bytes.length - 16_384, bytes.length - 8000);
      writeFileSync(path, bytes);
    },
    /./,
  ],
  [
    'detections.db is something else',
    'detections.db',
    (folder) =>
      writeFileSync(join(folder, 'detections.db'), 'no database, but a text of some length'.repeat(20)),
    /not a database/,
  ],
  [
    'detections.db is of a newer program',
    'detections.db',
    sql('PRAGMA user_version = 99'),
    /schema 99.*verify it with the program that wrote it/,
  ],
  [
    'detections.db is a database of something else',
    'detections.db',
    sql('PRAGMA application_id = 1'),
    /no database of this program/,
  ],
  [
    'an index lacks an entry',
    'detections.db',
    inDetections((db) => {
      // A row that the index does not know: what a lost write leaves.
      db.unsafeMode();
      db.pragma('writable_schema = ON');
      const { sql: definition } = db
        .prepare<unknown[], { sql: string }>(
          "SELECT sql FROM sqlite_schema WHERE name = 'stream_row_by_stream'",
        )
        .get() ?? { sql: '' };
      db.exec("DELETE FROM sqlite_schema WHERE name = 'delivery_by_time'");
      assert.ok(definition.length > 0);
    }),
    /never used|page \d+/i,
  ],
  [
    'access.db has a key of no account',
    'access.db',
    (folder) => {
      const db = openWriter(join(folder, 'access.db'), ACCESS_MIGRATIONS);
      db.pragma('foreign_keys = OFF');
      db.exec("UPDATE api_key SET account_id = 'nobody'");
      db.close();
    },
    /of api_key refers to a row of account that is not there/,
  ],
  [
    'a row of the stream has the number of another',
    'sequences',
    sql(`UPDATE stream_row SET sequence = sequence - 1 WHERE position = (${LAST_ROW})`),
    /has number \d+, expected \d+/,
  ],
  [
    "a stream's head is behind",
    'sequences',
    sql('UPDATE stream_head SET sequence = sequence - 1 WHERE stream = 14002'),
    /the text stream of subscription 7001: its head says/,
  ],
  [
    "a stream's head is missing",
    'sequences',
    sql('DELETE FROM stream_head WHERE stream = 14003'),
    /has rows and no head/,
  ],
  [
    'a head of no stream',
    'sequences',
    sql('INSERT INTO stream_head (stream, sequence, position) VALUES (2, 1, 1)'),
    /the text stream of subscription 1: .* there is no row/,
  ],
  [
    'a delivery is missing',
    'deliveries',
    sql(`DELETE FROM delivery WHERE first_position = (${FIRST_ROW})`),
    /the row at position \d+ belongs to no delivery/,
  ],
  [
    'two deliveries overlap',
    'deliveries',
    sql(`INSERT INTO delivery (first_position, last_position, delivered_at)
        SELECT position, position, (SELECT delivered_at FROM delivery ORDER BY first_position LIMIT 1)
        FROM stream_row WHERE position = (${FIRST_ROW}) + 1`),
    /overlap/,
  ],
  [
    'a delivery is earlier than the one before it',
    'deliveries',
    sql(`UPDATE delivery SET delivered_at = 1 WHERE last_position = (${LAST_ROW})`),
    /earlier time than the one before/,
  ],
  [
    'a delivery in the middle has no time',
    'deliveries',
    sql(`UPDATE delivery SET delivered_at = NULL WHERE first_position = (${FIRST_ROW})`),
    /has a time, but one before it has none/,
  ],
  [
    'a detection differs from the newest row of the stream',
    'detections',
    sql(`UPDATE detection SET body = replace(body, '"score":12', '"score":13')`),
    /differs from the row of the stream at position \d+, which is its newest/,
  ],
  [
    'a detection has a version that the stream does not have',
    'detections',
    sql(`UPDATE detection SET version = 7 WHERE id = '${idOf(known)}'`),
    /has version 7; the newest row of the stream has version 2/,
  ],
  [
    'a detection is missing',
    'detections',
    sql(`DELETE FROM detection WHERE id = '${idOf(known)}'`),
    /which is no detection/,
  ],
  [
    'a detection was never in the stream',
    'detections',
    sql(`INSERT INTO detection (id, stream, version, first_detected_at, band, score, print, article_id, body)
        SELECT 't.7001.9.9', stream, 1, first_detected_at, band, score, print, 9, body FROM detection LIMIT 1`),
    /t\.7001\.9\.9 has version 1; the stream has no row of it/,
  ],
  [
    'a version in the stream comes after a higher one',
    'detections',
    sql(`UPDATE stream_row SET body = replace(body, '"version":1,"event":"created"', '"version":2,"event":"updated"')
        WHERE position = (SELECT min(position) FROM stream_row WHERE body LIKE '%${idOf(known)}%')`),
    /has version 2 of .*, after version 2/,
  ],
  [
    'a version in the stream does not follow on the one before',
    'detections',
    sql(`UPDATE detection SET version = 3, body = replace(body, '"version":2,', '"version":3,') WHERE version = 2;
      UPDATE stream_row SET body = replace(body, '"version":2,', '"version":3,')`),
    /has version 3 of .*, after version 1/,
  ],
  [
    'a row of the stream says created with a later version',
    'detections',
    sql(
      `UPDATE stream_row SET body = replace(body, '"version":2,"event":"updated"', '"version":2,"event":"created"')`,
    ),
    /says created with version 2/,
  ],
  [
    'a row of the stream stands in the stream of another subscription',
    'detections',
    sql(
      'UPDATE detection SET stream = stream + 2 WHERE stream = 14003 AND rowid IN (SELECT rowid FROM detection WHERE stream = 14003 LIMIT 1)',
    ),
    /stands in the image stream of subscription 7001/,
  ],
  [
    'a window that is done names no file',
    'windows',
    sql("UPDATE export_window SET file = NULL WHERE export = 'imagewire'"),
    /the window imagewire .* is done without a file/,
  ],
  [
    'a window is failed and its file was applied',
    'windows',
    sql("UPDATE export_window SET status = 'failed' WHERE export = 'imagewire'"),
    /whose record says otherwise[\s\S]*was applied, and its window is not done/,
  ],
  [
    'a window of a file that was applied is missing',
    'windows',
    sql("DELETE FROM export_window WHERE export = 'imagewire'"),
    /was applied, and its window is not done/,
  ],
  [
    'a window begins at an odd time',
    'windows',
    sql("UPDATE export_window SET window_start = window_start + 1 WHERE status = 'failed'"),
    /does not begin at a multiple of ten minutes/,
  ],
  [
    'nothing is expected of an export that has windows',
    'windows',
    sql("DELETE FROM export_expectation WHERE export = 'imagewire'"),
    /imagewire has windows that are done, and none is expected/,
  ],
  [
    'the record of a file lacks its end',
    'windows',
    sql("UPDATE ingest_file SET finished_at = NULL WHERE outcome = 'failed'"),
    /is failed and lacks what belongs to that/,
  ],
];

describe('each damage is found by its own check', () => {
  for (const [name, check, damage, detail] of DAMAGES)
    test(name, async () => assertOnly(await found(damage), check, detail));
});

test('a row of the stream that is missing is found by its number, and by the version that it had', async () => {
  const findings = await found(
    sql(
      `DELETE FROM stream_row WHERE position = (SELECT min(position) FROM stream_row WHERE body LIKE '%${idOf(known)}%')`,
    ),
  );
  assert.deepEqual([...new Set(findings.map(({ check }) => check))], ['sequences', 'detections']);
  assert.match(textOf(findings), /the row at position \d+ has number 2, expected 1/);
  assert.match(textOf(findings), /has version 2 of .*, after version 0/);
});

test('versions that were raised by a thousand are in order', async () => {
  const raised =
    sql(`UPDATE detection SET version = 1002, body = replace(body, '"version":2,', '"version":1002,') WHERE version = 2;
    UPDATE stream_row SET body = replace(body, '"version":2,', '"version":1002,')`);
  assert.deepEqual(await found(raised), []);
});

describe('the journal', () => {
  const journal = (folder: string) => join(folder, 'journal');
  const lines = (folder: string) => readFileSync(journal(folder), 'utf8').split('\n');

  test('with a line that cannot be read', async () => {
    const damage = (folder: string) =>
      writeFileSync(journal(folder), readFileSync(journal(folder), 'utf8').replace('"sha256"', '"sha256'));
    const findings = await found(damage);
    assert.match(
      findings.map(({ detail }) => detail).join('\n'),
      /the line that begins at byte \d+ cannot be read/,
    );
  });

  test('that does not name a file which was applied', async () => {
    const damage = (folder: string) =>
      writeFileSync(
        journal(folder),
        lines(folder)
          .filter((line) => !line.includes('"applied":2,'))
          .join('\n'),
      );
    const findings = await found(damage);
    assert.match(findings.map(({ detail }) => detail).join('\n'), /it does not name file 2, imagewire\./);
  });

  test('that names another content', async () => {
    const damage = (folder: string) =>
      writeFileSync(
        journal(folder),
        lines(folder)
          .map((line) =>
            line.includes('"applied":2,') ? line.replace(/"sha256":"..../, '"sha256":"0000') : line,
          )
          .join('\n'),
      );
    assertOnly(await found(damage), 'journal', /it names another content for file 2/);
  });

  test('whose last line a crash cut off is in order, also with the next line behind it', async () => {
    assert.deepEqual(await found((folder) => appendFileSync(journal(folder), '{"posi')), []);
    assert.deepEqual(
      await found((folder) => appendFileSync(journal(folder), '{"posi\n{"position":5}\n')),
      [],
    );
    assert.deepEqual(await found((folder) => appendFileSync(journal(folder), '\0\0\0\n')), []);
  });
});

describe('the mark that each database has of the journal', () => {
  const journal = (folder: string) => join(folder, 'journal');

  test('is missed in a journal that was cut off, and in one that was exchanged', async () => {
    const cut = (folder: string) => truncateSync(journal(folder), statSync(journal(folder)).size - 200);
    assert.match(
      textOf(await found(cut)),
      /detections\.db: the journal is shorter than the database knows it/,
    );
    const other = (folder: string) =>
      writeFileSync(
        journal(folder),
        readFileSync(journal(folder), 'utf8').replace(/"journal":"..../, '"journal":"0000'),
      );
    assertOnly(await found(other), 'journal mark', /the journal is another one than the database knows/);
    const changed = (folder: string) =>
      writeFileSync(
        journal(folder),
        readFileSync(journal(folder), 'utf8').replaceAll('"position":1', '"position":2'),
      );
    assertOnly(await found(changed), 'journal mark', /the journal is not as the database knows it/);
  });

  test('is gone with the journal', async () => {
    assert.match(
      textOf(await found((folder) => rmSync(journal(folder)))),
      /is missing or empty.*\n.*the journal is missing/s,
    );
  });
});

describe('the archive', () => {
  test('that lacks a file', async () => {
    assertOnly(
      await found((folder) => rmSync(join(folder, 'drop', archived))),
      'archive',
      /file 1, archive.* is not in/,
    );
  });

  test('with a file of another length', async () => {
    const damage = (folder: string) => appendFileSync(join(folder, 'drop', archived), '\n');
    assertOnly(await found(damage), 'archive', /another length/);
  });

  test('with a file of another content, which only reading shows', async () => {
    const damage = (folder: string) => {
      const path = join(folder, 'drop', archived);
      const content = readFileSync(path);
      content[20] = (content[20] ?? 0) ^ 1;
      writeFileSync(path, content);
    };
    assert.deepEqual(await found(damage), []);
    assertOnly(await found(damage, { hashes: true }), 'archive', /another SHA-256/);
  });

  test('without files that were deleted for their age is in order', async () => {
    const damage = (folder: string) => {
      rmSync(join(folder, 'drop', archived));
      sql('UPDATE ingest_file SET destination = NULL WHERE number = 1')(folder);
    };
    assert.deepEqual(await found(damage), []);
  });
});

test('an access.db that is rubbish, or empty, is found like other faults', async () => {
  for (const content of [randomBytes(90_000), Buffer.alloc(0)]) {
    const rubbish = (folder: string) => {
      for (const end of ['-wal', '-shm']) rmSync(join(folder, `access.db${end}`), { force: true });
      writeFileSync(join(folder, 'access.db'), content);
    };
    assertOnly(await found(rubbish), 'access.db', /./);
  }
});

test('a file that the appliance deletes for its age meanwhile is not missing, nor does its log have to wait', async () => {
  const copy = join(work, 'copy-deleting');
  cpSync(good, copy, { recursive: true });
  const db = openWriter(join(copy, 'detections.db'), DETECTIONS_MIGRATIONS);
  let busy: unknown = null;
  const onProgress = (what: string, done: number) => {
    if (what !== 'checking archived files' || done !== 1) return;
    const { destination } = db
      .prepare<[], { destination: string }>('SELECT destination FROM ingest_file WHERE number = 2')
      .get() ?? { destination: '' };
    rmSync(join(copy, 'drop', destination));
    db.exec('UPDATE ingest_file SET destination = NULL WHERE number = 2');
    busy = db.prepare<[], { busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy;
  };
  const archive = { drop: join(copy, 'drop'), hashes: true };
  const findings = await verify(dataFolder(copy), { archive, onProgress });
  db.close();
  assert.deepEqual(findings.list(), []);
  assert.equal(busy, 0);
});

test('rows of a subscription that is being removed are not looked at', async () => {
  const remove = (folder: string) => {
    const db = openWriter(join(folder, 'access.db'), ACCESS_MIGRATIONS);
    const request = JSON.stringify({ kind: 'remove', subscriptions: [7001] });
    db.prepare('INSERT INTO ingest_request (request, created_at) VALUES (?, 1)').run(request);
    db.close();
  };
  const half = inDetections((db) => {
    db.exec('DELETE FROM stream_head WHERE stream = 14002');
    db.exec('DELETE FROM stream_row WHERE stream = 14002 AND sequence < 3');
    db.exec('DELETE FROM detection WHERE stream = 14003');
  });
  assert.ok((await found(half)).length > 0);
  assert.deepEqual(
    await found((folder) => {
      half(folder);
      remove(folder);
    }),
    [],
  );
});

test('more of one kind is counted, not listed', async () => {
  const findings = await found(sql('UPDATE stream_row SET sequence = sequence * 2'));
  assert.equal(findings.filter(({ check }) => check === 'sequences').length, 11);
  assert.match(findings.at(-1)?.detail ?? '', /^and \d+ more$/);
});

describe('a backup', () => {
  const backup = () => join(work, 'backup.tar');
  before(() => appliance.cli(['backup', backup()]));

  function verified(file: string) {
    const { status, stdout, stderr } = appliance.cli(['verify', file, '--json'], { anyStatus: true });
    assert.equal(stderr, '');
    return { status, ...JSON.parse(stdout) };
  }

  test('is unpacked beside itself, and nothing stays of that', () => {
    assert.deepEqual(verified(backup()).findings, []);
    assert.deepEqual(
      readdirSync(work).filter((name) => name.startsWith('.')),
      [],
    );
  });

  test('that lost its end, one with a changed byte, and what is no backup are each found', () => {
    const file = join(work, 'bad.tar');
    const bytes = readFileSync(backup());
    for (const [content, detail] of [
      [bytes.subarray(0, bytes.length - 30_000), /damaged, cut off or no tar/],
      [bytes.subarray(0, 3000), /damaged, cut off or no tar|is not in it/],
      [Buffer.from(bytes).fill(0x20, 100_000, 100_010), /its detections\.db is damaged: its SHA-256/],
      [Buffer.from('some text'), /damaged, cut off or no tar|is not in it/],
      [Buffer.alloc(0), /damaged, cut off or no tar|is not in it/],
    ] as const) {
      writeFileSync(file, content);
      const { status, ok, findings } = verified(file);
      assert.deepEqual([status, ok, findings.length, findings[0].check], [1, false, 1, 'backup file']);
      assert.match(findings[0].detail, detail);
    }
  });

  test('with other entries than its own is none: links, folders, further files, paths that lead elsewhere', () => {
    const content = join(work, 'content');
    cpSync(good, content, { recursive: true });
    writeFileSync(join(content, 'manifest.json'), '{}');
    for (const [names, detail] of [
      [['detections.db'], /expected the file manifest\.json, found "detections\.db"/],
      [['drop'], /found "drop\/" \(Directory\)/],
      [['manifest.json'], /does not say that it is a wirewatch-backup/],
    ] as const) {
      const file = join(work, 'other.tar');
      create({ file, cwd: content, sync: true }, [...names]);
      assert.match(verified(file).findings[0].detail, detail);
    }
    assert.equal(statSync(join(good, 'secret')).size, 32);
  });

  test('that is not there is said to be so', () => {
    const { status, stderr } = appliance.cli(['verify', join(work, 'gone.tar')], { anyStatus: true });
    assert.equal(status, 1);
    assert.match(stderr, /cannot read .*gone\.tar/);
  });

  test('prints what each finding means and what to do', () => {
    writeFileSync(join(work, 'text.tar'), 'text');
    const { stdout } = appliance.cli(['verify', join(work, 'text.tar')], { anyStatus: true });
    assert.match(
      stdout,
      /is not in order\.[\s\S]*What it means: The file is not a whole backup[\s\S]*What to do: /,
    );
  });
});
