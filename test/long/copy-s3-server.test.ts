/** A copy's place on a real S3 service: Ceph. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AwsV4Signer } from 'aws4fetch';
import { openPlace } from '../../src/copy/open-place.ts';
import { type PlaceSettings, Unreachable } from '../../src/copy/place.ts';
import { unlessError } from '../../src/refused.ts';
import { freePort } from '../support/free-port.ts';
import { testPlaces } from '../support/place-cases.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const PROGRAMS = ['radosgw', 'radosgw-admin', 'ceph', 'ceph-mon', 'ceph-osd', 'monmaptool'];

/** The reason to skip tests that need it. */
const WITHOUT_CEPH =
  PROGRAMS.some((name) => spawnSync('which', [name]).status !== 0) &&
  'Ceph is not installed: apt-get install radosgw ceph-mon ceph-osd';

const CEPH_BUCKET = 'wirewatch';
const REGION = 'us-east-1';
const ACCESS = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY';

/** It has an empty bucket, {@link CEPH_BUCKET}. */
async function startCeph() {
  const folder = join(testFolder(), 'ceph');
  const port = await freePort();
  const monitorPort = await freePort();
  const script = join(import.meta.dirname, '..', 'support', 'ceph.sh');
  const child = spawn(script, [folder, `${port}`, `${monitorPort}`, ACCESS, SECRET], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const stop = async () => {
    const isRunning = child.exitCode === null && child.signalCode === null;
    const pids = join(folder, 'pids');
    // The script ends with the last of them.
    for (const pid of existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : [])
      unlessError(false, () => process.kill(Number(pid)));
    if (isRunning) await once(child, 'exit');
  };
  try {
    await until(`Ceph to start`, () => {
      if (child.exitCode !== null) throw new Error(`Ceph did not start:\n${output}`);
      return existsSync(join(folder, 'ready'));
    });
    const endpoint = `http://127.0.0.1:${port}`;
    await until('the bucket', () => makeBucket(`${endpoint}/${CEPH_BUCKET}`).catch(() => false));
    const credentials = join(folder, 'credentials');
    writeFileSync(credentials, `${ACCESS}\n${SECRET}\n`, { mode: 0o600 });
    const settings: PlaceSettings = { endpoint, region: REGION, credentials };
    return { settings, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function makeBucket(url: string): Promise<boolean> {
  const keys = { accessKeyId: ACCESS, secretAccessKey: SECRET };
  const signed = await new AwsV4Signer({ ...keys, method: 'PUT', url, service: 's3', region: REGION }).sign();
  return (await fetch(signed.url, { method: 'PUT', headers: signed.headers })).ok;
}

let ceph: Awaited<ReturnType<typeof startCeph>> | undefined;
let places = 0;

before(async () => {
  if (!WITHOUT_CEPH) ceph = await startCeph();
});
after(() => ceph?.stop());

const open = async () => {
  assert.ok(ceph);
  const { settings } = ceph;
  const to = `s3://${CEPH_BUCKET}/place${++places}`;
  return { place: await openPlace(to, settings), again: () => openPlace(to, settings) };
};

testPlaces('Ceph', open, WITHOUT_CEPH);

test('Ceph: a bucket that is not there, and credentials that it does not know', {
  skip: WITHOUT_CEPH,
}, async () => {
  assert.ok(ceph);
  const { settings } = ceph;
  const absent = await openPlace('s3://absent/a', settings);
  for (const call of [
    () => absent.create('x', Buffer.from('x')),
    () => absent.read('x'),
    () => absent.list('', ''),
  ])
    await assert.rejects(
      call(),
      (error) => error instanceof Unreachable && /404 \(NoSuchBucket\)/.test(error.message),
    );
  process.env.AWS_ACCESS_KEY_ID = 'unknown';
  process.env.AWS_SECRET_ACCESS_KEY = 'unknown';
  const stranger = await openPlace(`s3://${CEPH_BUCKET}/a`, { ...settings, credentials: '' });
  await assert.rejects(stranger.read('x'), /403 \(InvalidAccessKeyId\)\. Check the credentials/);
});
