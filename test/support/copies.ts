/** An appliance with two detections, and copies of it. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { type Appliance, showLogOfFailures, startAppliance } from './appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from './export-files.ts';
import { testFolder } from './test-folder.ts';

export let appliance: Appliance;
export const work = testFolder();
showLogOfFailures(() => appliance?.serving());
before(async () => {
  appliance = await startAppliance();
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
});
after(() => appliance?.stop());

export const target = (name: string) => join(work, name);
export const drop = () => appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));

export interface Printed {
  readonly path: string;
  readonly written: number;
  readonly entries: number;
  readonly access_changes: number;
}

export function backUp(to: string): Printed {
  return JSON.parse(appliance.cli(['backup', to, '--json']).stdout);
}

export function verified(source: string): { ok: boolean; findings: string[]; entries: number } {
  return JSON.parse(appliance.cli(['verify', source, '--json'], { anyStatus: true }).stdout);
}

export function assertGood(source: string): void {
  const { ok, findings } = verified(source);
  assert.deepEqual([ok, findings], [true, []]);
}

export function refusal(args: readonly string[], code = 1): string {
  const { status, stdout, stderr } = appliance.cli(args, { anyStatus: true });
  assert.equal(status, code, stderr);
  assert.equal(stdout, '');
  return stderr;
}

export function filesIn(folder: string): Map<string, { bytes: number; mode: number }> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return new Map(
    names
      .map((name) => [name, statSync(join(folder, name))] as const)
      .filter(([, stats]) => stats.isFile())
      .map(([name, stats]) => [name, { bytes: stats.size, mode: stats.mode & 0o777 }]),
  );
}
