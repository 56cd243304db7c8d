/**
 * Stores the figures for the documents in `test/bench/measured.json`, only with `--record`: other runs change no file.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Figure, type Row, timesAsGood } from './common.ts';
import type { MeasuredGroup, MeasuredGroups } from './measured.ts';

const MEASURED = fileURLToPath(new URL('./measured.json', import.meta.url));

export type GroupName = keyof MeasuredGroups;

/** Replaces one group of figures. */
export function record(name: GroupName, how: string, figures: MeasuredGroup['figures']): void {
  const groups: MeasuredGroups = JSON.parse(readFileSync(MEASURED, 'utf8'));
  const group: MeasuredGroup = {
    how,
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    day: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`,
    figures,
  };
  writeFileSync(MEASURED, `${JSON.stringify({ ...groups, [name]: group }, null, 2)}\n`);
}

export function ofRow({ what, against, unit, appliance, limit }: Row): MeasuredGroup['figures'][number] {
  return { what, against, unit, now: appliance, before: limit, ratio: appliance / limit };
}

export function ofFigure(figure: Figure): MeasuredGroup['figures'][number] {
  const { what, unit, now, before } = figure;
  return { what, unit, now, before, ratio: timesAsGood(figure) };
}
