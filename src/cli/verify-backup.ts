/** `wirewatch verify SRC`: whether a backup is intact. */
import type { Command } from 'commander';
import { findSource } from '../backup/source.ts';
import { type VerifiedBackup, verifyBackup } from '../backup/verify-backup.ts';
import { counted } from '../counted.ts';
import { commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

/** Prints the findings; sets exit code 1 if there are any. */
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
  if (findings.length === 0)
    return `${path} is intact: ${counted(entries, 'log entry', 'log entries')}${at === null ? '' : `, backed up at ${at}`}.\n\nEvery checksum was compared. To test a restore as well: wirewatch restore --rehearse ${path}`;
  return [
    `${path} is damaged:`,
    ...findings.map((finding) => `  ${finding}`),
    '',
    'If the installation itself is intact, delete the damaged file: the next backup to this folder copies it again. Otherwise use another backup.',
  ].join('\n');
}
