/** `wirewatch verify SRC`: whether a backup is as it was written. */
import type { Command } from 'commander';
import { findSource } from '../backup/source.ts';
import { type VerifiedBackup, verifyBackup } from '../backup/verify-backup.ts';
import { commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

/** Prints what was found; the exit code is 1 where something was. */
export async function verifySource(command: Command, source: string): Promise<void> {
  const steps = progressOfSteps();
  try {
    const verified = await verifyBackup(findSource(source), steps.update);
    steps.end();
    const { path, at, entries, findings } = verified;
    print(
      { verified: path, ok: findings.length === 0, backed_up_at: at, entries, findings },
      { json: commonOptions(command).json, text: () => textOf(verified) },
    );
    if (findings.length > 0) process.exitCode = 1;
  } finally {
    steps.end();
  }
}

function textOf({ path, at, entries, findings }: VerifiedBackup): string {
  const count = entries.toLocaleString('en-US');
  const isOne = entries === 1;
  if (findings.length === 0)
    return `${path} is good: ${count} ${isOne ? 'entry' : 'entries'} of the logs${at === null ? '' : `, backed up at ${at}`}.\n\nEvery checksum was compared. To try a restore as well: wirewatch restore --rehearse ${path}`;
  return [
    `${path} is damaged:`,
    ...findings.map((finding) => `  ${finding}`),
    '',
    'Where the installation itself is sound, delete the damaged file: the next backup into this folder copies it again. Otherwise use another backup.',
  ].join('\n');
}
