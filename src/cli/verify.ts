/** `wirewatch verify`: whether an installation matches its logs, or a backup is intact. */
import { existsSync, statSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readTrail } from '../auth/audit.ts';
import { findCopy, findSpare } from '../auth/spare-copy.ts';
import { openCopy, verifyCopy } from '../copy/source.ts';
import { counted, grouped } from '../counted.ts';
import { ALERT_ADVICE } from '../health/alert-texts.ts';
import { scrub } from '../log/scrub.ts';
import {
  describeFindings,
  FINDING_KINDS,
  type FindingKind,
  findingsOf,
  type ScrubFinding,
  type ScrubResult,
  scrubFindings,
  writeScrubRecord,
} from '../log/scrub-findings.ts';
import { anyText } from '../operations/member.ts';
import { failed, misconfigured } from '../refused.ts';
import { pasted } from '../setup/shell.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { openContent } from '../store/database.ts';
import { type DataFolder, dataFolder, noteDamage } from '../store/folder.ts';
import { isLocked, keepInPlace } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { joined } from '../text-layout.ts';
import { lowerPriority } from './backup.ts';
import { defineCommand } from './command.ts';
import { configOf, requireInstallation } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { type Result, showProgress } from './output.ts';

export const register = defineCommand({
  members: { src: anyText('a copy: a folder, or s3://bucket/prefix (default: verify the data folder)') },
  operands: ['src'],
  options: [DROP_OPTION],
  examples: ['verify', 'verify /backups/wirewatch', 'verify /backups/wirewatch --json'],
  async run({ src }, self) {
    lowerPriority();
    const config = configOf(self);
    if (src === undefined) {
      const folder = dataFolder(config.dataFolder);
      requireOwner(folder);
      requireInstallation(folder);
      return await verifyData(folder);
    }
    const source = await openCopy(src, config.copy);
    const { entries, findings } = await verifyCopy(source, showProgress);
    const ok = findings.length === 0;
    const text = sourceText(source.text, entries, findings);
    return { value: { verified: source.text, ok, entries, findings }, text, failed: !ok };
  },
});

function sourceText(path: string, entries: number, findings: readonly string[]): string {
  if (findings.length === 0)
    return `${path} is intact: ${counted(entries, 'log entry', 'log entries')}.\n\nEvery checksum was compared. To try a restore as well: wirewatch restore ${pasted(path)} --data EMPTY_FOLDER`;
  return [
    `${path} is damaged:`,
    ...findings.map((finding) => `  ${finding}`),
    '',
    'If the installation itself is intact, make a new copy in another place (wirewatch backup PLACE), and delete this one.',
  ].join('\n');
}

/** Fails if there are findings, or if not everything could be compared. */
async function verifyData(folder: DataFolder): Promise<Result> {
  refuseHalfRestored(folder);
  requireComplete(folder);
  using held = new DisposableStack();
  held.defer(keepInPlace(folder));
  const result = await scrub({ folder, between: () => nextTurn(), onProgress: showProgress });
  // A read that failed once is no damage.
  const others = checkOthers(folder).length > 0 ? checkOthers(folder) : [];
  const findings = [...result.findings, ...others];
  // A running Wirewatch reads the record and acts on it; the next start rebuilds the database.
  writeScrubRecord(folder, { ...result, findings }, Date.now());
  const ofDatabase = findingsOf(result, 'database');
  if (ofDatabase.length > 0) noteDamage(folder, `detections.db: ${describeFindings(ofDatabase)}`);
  const document = documentOf(folder, { ...result, findings });
  const { ok, entry } = document;
  return {
    value: document,
    text: ok
      ? `${folder.root} is intact: every log entry up to number ${grouped(entry ?? 0)} is complete, detections.db matches the log, access.db and its spare copy are sound, and the secret is present.`
      : damagedText(document),
    failed: !ok,
  };
}

function requireComplete({ root, detections, secret, damage, serveLock }: DataFolder): void {
  if ((!existsSync(detections) || existsSync(damage)) && isLocked(serveLock))
    throw failed(
      `${detections} is damaged or missing, and Wirewatch is running: it may be rebuilding the file. See the log output of Wirewatch, and try again when the rebuild is done.`,
    );
  if (!existsSync(detections) && !existsSync(secret))
    throw misconfigured(
      `there is nothing to verify in ${root} yet: Wirewatch has never been started with this data folder. Start it with: wirewatch serve`,
    );
}

/** What is no part of the log and its database. */
function checkOthers(folder: DataFolder): ScrubFinding[] {
  const { access, spare, secret } = folder;
  const findings = scrubFindings();
  const found = findCopy(access);
  if (found.kind === 'missing') findings.add('access damaged', `${access} is missing`);
  if (found.kind === 'damaged') findings.add('access damaged', `${access}: ${found.reason}`);
  if (found.kind === 'sound') {
    using db = openContent(found.content);
    const { damage } = readTrail(db);
    if (damage !== null) findings.add('audit trail damaged', `${access}: ${damage}`);
  }
  const kept = findSpare(folder);
  // A missing one is no damage: the next start or change makes it, as after a restore.
  if (kept.kind === 'damaged') findings.add('spare copy damaged', `${spare}: ${kept.reason}`);
  const size = statSync(secret, { throwIfNoEntry: false })?.size;
  if (size !== SECRET_BYTES) {
    const problem =
      size === undefined ? 'is missing' : `has ${counted(size, 'byte')}, expected ${SECRET_BYTES}`;
    findings.add('secret missing', `${secret} ${problem}`);
  }
  return findings.list();
}

const WHAT_TO_DO: Readonly<Record<FindingKind['of'], string>> = {
  log: ALERT_ADVICE['log damaged'],
  database:
    'Check the disk. A running Wirewatch makes the database anew from the log within a minute; otherwise the next start does.',
  access:
    'Restart Wirewatch: the spare copy takes its place. If that is damaged, too, restore a backup: wirewatch restore BACKUP --replace',
  trail:
    'Accounts and keys are not affected. If none was changed since, restart Wirewatch: the spare copy has the entries. Otherwise a backup may have them: restore it to another folder (wirewatch restore BACKUP --data EMPTY_FOLDER), and run wirewatch audit there.',
  spare: 'Check the disk. The next start, or change of an account or a key, makes it anew.',
  secret: ALERT_ADVICE['secret missing'],
};

function documentOf({ root }: DataFolder, { entry, findings, not_compared }: ScrubResult) {
  const ok = findings.length === 0 && not_compared === null;
  const explained = findings.map((finding) => {
    const { means, of: place } = FINDING_KINDS[finding.kind];
    return { ...finding, means, what_to_do: WHAT_TO_DO[place] };
  });
  return { verified: root, ok, entry, findings: explained, not_compared };
}

function damagedText({ verified, findings, not_compared }: ReturnType<typeof documentOf>): string {
  const parts = findings.map(({ kind, count, first, means }) => {
    const more = count - first.length;
    return joined('\n', [
      `${kind}: ${grouped(count)}`,
      ...first.map((detail) => `  ${detail}`),
      more > 0 && `  and ${grouped(more)} more`,
      `  ${means}`,
    ]);
  });
  const toDo = new Set(findings.map(({ what_to_do }) => `\n  ${what_to_do}`));
  return joined('\n\n', [
    findings.length === 0
      ? `No damage was found in ${verified}, but not everything was compared.`
      : `${verified} is damaged.`,
    ...parts,
    not_compared !== null && `detections.db was not compared with the log: ${not_compared}.`,
    toDo.size > 0 && `What to do:${[...toDo].join('')}`,
  ]);
}
