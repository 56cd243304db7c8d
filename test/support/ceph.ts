/** Ceph's S3 service on loopback (ceph.sh), where Debian's radosgw, ceph-mon and ceph-osd are installed. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AwsV4Signer } from 'aws4fetch';
import type { PlaceSettings } from '../../src/copy/place.ts';
import { freePort } from './free-port.ts';
import { testFolder } from './test-folder.ts';
import { until } from './until.ts';

const PROGRAMS = ['radosgw', 'radosgw-admin', 'ceph', 'ceph-mon', 'ceph-osd', 'monmaptool'];

/** The reason to skip tests that need it. */
export const WITHOUT_CEPH =
  PROGRAMS.some((name) => spawnSync('which', [name]).status !== 0) &&
  'Ceph is not installed: apt-get install radosgw ceph-mon ceph-osd';

export const CEPH_BUCKET = 'wirewatch';
const REGION = 'us-east-1';
const ACCESS = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY';

export interface Ceph {
  readonly settings: PlaceSettings;
  stop(): Promise<void>;
}

/** It has an empty bucket, {@link CEPH_BUCKET}. */
export async function startCeph(): Promise<Ceph> {
  const folder = join(testFolder(), 'ceph');
  const port = await freePort();
  const monitorPort = await freePort();
  const script = join(import.meta.dirname, 'ceph.sh');
  const child = spawn(script, [folder, `${port}`, `${monitorPort}`, ACCESS, SECRET], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const stop = async () => {
    const isRunning = child.exitCode === null && child.signalCode === null;
    const pids = join(folder, 'pids');
    // The script ends with the last of them.
    for (const pid of existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : []) {
      try {
        process.kill(Number(pid));
      } catch {}
    }
    if (isRunning) await new Promise((resolve) => child.once('exit', resolve));
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
    return { settings: { endpoint, region: REGION, credentials }, stop };
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
