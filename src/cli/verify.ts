/** `wirewatch verify`: whether an installation, or a backup of one, is whole and agrees with itself. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { type CheckName, checkNames, type Finding, type Findings } from '../backup/findings.ts';
import { verify } from '../backup/verify.ts';
import { verifyBackup } from '../backup/verify-backup.ts';
import { Refused } from '../refused.ts';
import { refuseHalfRestored } from '../store/incoming.ts';
import { beGentle } from './backup.ts';
import { configOf, folderOf } from './config.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

export function register(command: Command): void {
  command
    .argument('[file]', 'a backup; without it, the data folder is checked')
    .option('--archive', 'read every archived file, too, and compare its SHA-256')
    .action(async (file: string | undefined, options: { archive?: boolean }, self: Command) => {
      beGentle();
      const steps = progressOfSteps();
      try {
        const { what, findings } =
          file === undefined
            ? await verifyData(self, options.archive === true, steps.update)
            : await verifyFile(file, options.archive === true, steps.update);
        steps.end();
        const found = findings.list();
        print(documentOf(what, findings), {
          json: commonOptions(self).json,
          text: () => textOf(what, findings),
        });
        if (found.length > 0) process.exitCode = 1;
      } finally {
        steps.end();
      }
    });
  addDropOption(command);
  addExamples(command, ['verify', 'verify --archive', 'verify /backups/monday.tar --json']);
}

type OnProgress = (what: string, done: number, total: number) => void;

async function verifyData(command: Command, hashes: boolean, onProgress: OnProgress) {
  const config = configOf(command);
  const folder = folderOf(config);
  refuseHalfRestored(folder);
  if (!existsSync(folder.access)) {
    throw new Refused(
      'configuration',
      `there is no installation in ${folder.root}: ${folder.access} is missing. Name the data folder with --data, or a backup: wirewatch verify FILE`,
    );
  }
  if (!existsSync(folder.detections) && !existsSync(folder.secret)) {
    throw new Refused(
      'configuration',
      `there is nothing to verify in ${folder.root} yet: no appliance was ever started on it.`,
    );
  }
  const archive = { drop: config.ingest.drop, hashes };
  const findings = await verify(folder, { archive, onProgress });
  findings.skip('backup file', 'the data folder was checked, not a backup');
  return { what: folder.root, findings };
}

async function verifyFile(file: string, hashes: boolean, onProgress: OnProgress) {
  if (hashes) {
    throw new Refused('usage', '--archive goes with the data folder: a backup does not hold the archive');
  }
  const what = path.resolve(file);
  return { what, findings: await verifyBackup(what, onProgress) };
}

function documentOf(what: string, findings: Findings) {
  const found = findings.list();
  return { verified: what, ok: found.length === 0, findings: found, not_checked: findings.notChecked() };
}

function textOf(what: string, findings: Findings): string {
  const found = findings.list();
  const notChecked = findings.notChecked();
  const skipped = new Set<CheckName>(notChecked.map(({ check }) => check));
  if (found.length === 0) {
    const checked = checkNames().filter((name) => !skipped.has(name));
    return `${what} is in order.\n\nChecked: ${checked.join(', ')}.`;
  }
  const byCheck = Map.groupBy(found, ({ check }) => check);
  const parts = [...byCheck].map(([check, ofCheck]) => findingText(check, ofCheck));
  const rest = notChecked.map(({ check, reason }) => `${check}: not checked, ${reason}`);
  return [`${what} is not in order.`, ...parts, ...(rest.length > 0 ? [rest.join('\n')] : [])].join('\n\n');
}

function findingText(check: CheckName, found: readonly Finding[]): string {
  const [first] = found;
  const details = found.map(({ detail }) => `  ${detail}`);
  return [check, ...details, `  What it means: ${first?.means}`, `  What to do: ${first?.what_to_do}`].join(
    '\n',
  );
}
