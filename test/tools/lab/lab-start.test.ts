/** How a lab starts: the seed determines its detections and key, and no other lab may use its folder. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SampleSubscription } from '../../../src/tools/generate/rows.ts';
import { assertFailed, runBeside } from '../../support/command.ts';
import { CHANGES, follow, SINCE_SPRING, SPRING, startLab, withLab } from '../../support/lab.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { testFolder } from '../../support/test-folder.ts';

test('a seed gives the same month of detections and the same key at any time', async () => {
  const seen: { ids: string[]; photos: unknown; key: string }[] = [];
  const start = async (seed: string, clock: string) => {
    const keyFile = join(testFolder(), 'key.txt');
    await withLab(['--seed', seed, '--clock', clock, '--key-file', keyFile], async (lab) => {
      const since = `since=${new Date(Date.parse(clock) - 1000).toISOString()}`;
      assert.equal(readFileSync(keyFile, 'utf8').trim(), lab.key);
      const { now } = await lab.control('clock');
      const aheadMs = Date.parse(now) - Date.parse(clock);
      assert.ok(aheadMs >= 0 && aheadMs < 300_000, `the clock shows ${now}`);
      const { rows, as_of } = await follow(lab, since);
      assert.ok(Date.parse(clock) - Date.parse(as_of) < 600_000 + 300_000, as_of);
      const me = await lab.read('/v1/me');
      const read = me.subscriptions.map((one: SampleSubscription) => `${one.id} ${one.content_types}`);
      assert.deepEqual(read, ['7001 text,image', '7002 text,image']);
      const starts = me.subscriptions.map((one: { data_starts: { text: string } }) => one.data_starts.text);
      const daysAgo = (Date.parse(clock) - Math.min(...starts.map(Date.parse))) / 86_400_000;
      assert.ok(daysAgo > 28 && daysAgo < 32, `data start ${daysAgo} days ago`);
      assert.deepEqual(me.data_gaps, { text: [], image: [] });
      assert.equal((await lab.read('/v1/health')).status, 'ok');
      assert.doesNotMatch(lab.run.stderr(), /backfill-lab-month/, 'the initial month must not be logged');
      const { data } = await lab.read(`${CHANGES}?${since}&content_type=image&fields=source.image_url`);
      // Without the address of the lab.
      const photos = data.map(({ source }: { source: { image_url: string } }) =>
        source.image_url.slice(lab.url.length),
      );
      seen.push({ ids: rows.map(({ id, version }) => `${id} ${version}`), photos, key: lab.key });
    });
  };
  await start('7', SPRING);
  await start('7', '2027-10-01T12:34Z');
  await start('8', SPRING);
  const [first, second, third] = seen;
  assert.ok(first !== undefined && first.ids.length > 500);
  assert.match(JSON.stringify(first.photos), /signature=/);
  assert.deepEqual(second, first);
  assert.notDeepEqual(third?.ids, first.ids);
  assert.notEqual(third?.key, first.key);
});

test('another origin may read the header of a fault; a lab ends at once even during a delay, and its ready file with it', () =>
  inFolder(async (folder) => {
    mkdirSync(join(folder, 'lab'));
    const page = 'https://page.example';
    // A lab has no copy, and follows none.
    const copy = `[copy]\nto = "${join(folder, 'copy')}"\nstandby = true\n`;
    writeFileSync(join(folder, 'lab', 'wirewatch.toml'), `[server]\ncors_origins = ["${page}"]\n${copy}`);
    const lab = await startLab(folder, []);
    await lab.control('fault-add', { status: 503 });
    const faulty = await lab.get('/v1/me', { origin: page });
    assert.equal(faulty.status, 503);
    assert.match(faulty.headers.get('access-control-expose-headers') ?? '', /Retry-After.*X-Wirewatch-Lab/);
    await lab.control('fault-add', { delay: '1d' });
    const cut = assert.rejects(lab.get('/v1/me'));
    for (let left = 1; left > 0; ) [{ left }] = await lab.control('fault-list');
    await lab.stop();
    await cut;
    for (const name of ['ready.json', 'copy']) assert.ok(!existsSync(join(folder, name)), name);
  }));

test('a lab recreates its own folder, which no other command opens; nor does a lab open another', () =>
  inFolder(async (folder) => {
    const before = await startLab(folder, ['--clock', SPRING]);
    const month = await follow(before, SINCE_SPRING);
    await before.control('drop', { rows: 5 });
    const twice = await runBeside(['lab', '--data', before.data, '--port', '0']);
    assertFailed(twice, 1, /already using the data folder/);
    assert.equal((await before.get('/v1/me')).status, 200, 'the running lab must not be disturbed');
    const ofLab = (...args: string[]) => runBeside([...args, '--data', before.data]);
    assert.equal((await ofLab('healthcheck')).status, 0);
    await ofLab('ingest', 'pause');
    assertFailed(await ofLab('lab', 'drop'), 1, /ingest is paused, .* wirewatch ingest resume/);
    await ofLab('ingest', 'resume');
    await before.stop();
    for (const args of [['serve', '--port', '0'], ['status'], ['key', 'list'], ['audit'], ['verify']])
      assertFailed(await ofLab(...args), 78, /belongs to "wirewatch lab"/);
    assert.equal((await ofLab('demo', '--port', '0')).status, 78);
    const other = join(folder, 'installation');
    assert.equal(await runProgram(['account', 'add', 'acme', '--name', 'Acme', '--data', other]).ended, 0);
    const filled = join(folder, 'filled');
    mkdirSync(filled);
    writeFileSync(join(filled, 'thesis.txt'), 'the only copy');
    writeFileSync(join(filled, 'wirewatch-lab.json'), '{}');
    const names = (data: string) => readdirSync(data).filter((name) => !name.startsWith('lock'));
    for (const data of [other, filled])
      for (const command of ['lab', 'demo']) {
        const there = names(data);
        const refused = `is not empty and not a folder of "wirewatch ${command}", which would delete what is in it`;
        const run = await runBeside([command, '--data', data, '--port', '0']);
        assertFailed(run, 78, new RegExp(refused));
        assert.deepEqual(names(data), there);
      }
    assert.equal(readFileSync(join(filled, 'thesis.txt'), 'utf8'), 'the only copy');
    const lab = await startLab(folder, ['--clock', SPRING]);
    const { rows } = await follow(lab, SINCE_SPRING);
    const versions = (list: typeof rows) => list.map(({ id, version }) => `${id} ${version}`);
    assert.deepEqual(versions(rows), versions(month.rows));
    await lab.stop();
  }));
