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
  ScrubFindings,
  type ScrubResult,
  writeScrubRecord,
} from '../log/scrub-findings.ts';
import { anyText } from '../operations/member.ts';
import { failed, misconfigured } from '../refused.ts';
import { pasted } from '../setup/shell.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { openContent } from '../store/database.ts';
import { type DataFolder, noteDamage } from '../store/folder.ts';
import { isLocked, keepInPlace } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { joined } from '../text-layout.ts';
import { lowerPriority } from './backup.ts';
import { defineCommand, type Result } from './command.ts';
import { configOf, folderOf, requireInstallation } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress, type Progress } from './output.ts';

export const register = defineCommand({
  members: { src: anyText('a copy: a folder, or s3://bucket/prefix (default: verify the data folder)') },
  operands: ['src'],
  options: [DROP_OPTION],
  examples: ['verify', 'verify /backups/wirewatch', 'verify /backups/wirewatch --json'],
  async run({ src }, self) {
    lowerPriority();
    using progress = createProgress();
    const config = configOf(self);
    if (src === undefined) {
      const folder = folderOf(config);
      requireOwner(folder);
      requireInstallation(config);
      return await verifyData(folder, progress.update);
    }
    const source = await openCopy(src, config.copy);
    const { entries, findings } = await verifyCopy(source, progress.update);
    const ok = findings.length === 0;
    return {
      value: { verified: source.text, ok, entries, findings },
      text: sourceText(source.text, entries, findings),
      failed: !ok,
    };
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
async function verifyData(folder: DataFolder, onProgress: Progress['update']): Promise<Result> {
  refuseHalfRestored(folder);
  requireComplete(folder);
  using held = new DisposableStack();
  held.defer(keepInPlace(folder));
  const result = await scrub({ folder, between: () => nextTurn(), onProgress });
  const others = checkOthers(folder);
  // A read that failed once is no damage.
  const again = others.length > 0 ? checkOthers(folder) : [];
  const findings = [
    ...result.findings,
    ...again.filter(({ kind }) => others.some((found) => found.kind === kind)),
  ];
  // A running Wirewatch reads the record and acts on it; the next start rebuilds the database.
  writeScrubRecord(folder, { ...result, findings }, Date.now());
  const ofDatabase = findingsOf(result, 'database');
  if (ofDatabase.length > 0) noteDamage(folder, `detections.db: ${describeFindings(ofDatabase)}`);
  const { entry, not_compared } = result;
  const ok = findings.length === 0 && not_compared === null;
  const document = findings.map((finding) => {
    const { means, of: place } = FINDING_KINDS[finding.kind];
    return { ...finding, means, what_to_do: WHAT_TO_DO[place] };
  });
  return {
    value: { verified: folder.root, ok, entry, findings: document, not_compared },
    text: ok
      ? `${folder.root} is intact: every log entry up to number ${grouped(entry ?? 0)} is complete, detections.db matches the log, access.db and its spare copy are sound, and the secret is present.`
      : damagedText(folder, { ...result, findings }),
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

function checkOthers(folder: DataFolder): ScrubFinding[] {
  const findings = new ScrubFindings();
  checkAccess(folder, findings);
  checkSecret(folder, findings);
  return findings.list();
}

function checkAccess(folder: DataFolder, findings: ScrubFindings): void {
  const { access, spare } = folder;
  const found = findCopy(access);
  if (found.kind === 'missing') findings.add('access damaged', `${access} is missing`);
  if (found.kind === 'damaged') findings.add('access damaged', `${access}: ${found.reason}`);
  const kept = findSpare(folder);
  // A missing one is no damage: the next start or change makes it, as after a restore.
  if (kept.kind === 'damaged') findings.add('spare copy damaged', `${spare}: ${kept.reason}`);
  if (found.kind !== 'sound') return;
  using db = openContent(found.content);
  const { damage } = readTrail(db);
  if (damage !== null) findings.add('audit trail damaged', `${access}: ${damage}`);
}

function checkSecret({ secret }: DataFolder, findings: ScrubFindings): void {
  const found = statSync(secret, { throwIfNoEntry: false });
  if (found === undefined) findings.add('secret missing', `${secret} is missing`);
  else if (found.size !== SECRET_BYTES)
    findings.add('secret missing', `${secret} has ${counted(found.size, 'byte')}, expected ${SECRET_BYTES}`);
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

function damagedText({ root }: DataFolder, { findings, not_compared }: ScrubResult): string {
  const parts = findings.map(({ kind, count, first }) => {
    const more = count - first.length;
    return joined('\n', [
      `${kind}: ${grouped(count)}`,
      ...first.map((detail) => `  ${detail}`),
      more > 0 && `  and ${grouped(more)} more`,
      `  ${FINDING_KINDS[kind].means}`,
    ]);
  });
  const toDo = new Set(findings.map(({ kind }) => WHAT_TO_DO[FINDING_KINDS[kind].of]));
  return joined('\n\n', [
    findings.length === 0
      ? `No damage was found in ${root}, but not everything was compared.`
      : `${root} is damaged.`,
    ...parts,
    not_compared !== null && `detections.db was not compared with the log: ${not_compared}.`,
    toDo.size > 0 && ['What to do:', ...[...toDo].map((text) => `  ${text}`)].join('\n'),
  ]);
}
