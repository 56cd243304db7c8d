/**
 * Uses a renewed certificate without a restart, and opens alerts for one that is about to expire or cannot be used.
 *
 * Both files are read every few seconds and compared by content: this detects a rename, a changed link and writing in
 * place, on any file system. While a renewal is being written they do not match, so an error must persist for two checks
 * before it is reported. The previous pair stays in use until the new one is good.
 */
import type { Conditions } from '../health/alert-conditions.ts';
import type { Logger } from '../log.ts';
import { paced } from '../pace.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, type Now, SECOND_MS } from '../time.ts';
import {
  checkTlsPair,
  readTlsFiles,
  type TlsFiles,
  type TlsPair,
  type TlsPaths,
  validityError,
} from './tls-pair.ts';

export interface TlsRenewalOptions {
  readonly paths: TlsPaths;
  /** What is in use. */
  readonly pair: TlsPair;
  readonly onRenewed: (pair: TlsPair) => void;
  readonly conditions: Pick<Conditions, 'set'>;
  readonly log: Logger;
  readonly now: Now;
  /** null: only on {@link TlsRenewal.check}. */
  readonly everyMs?: number | null;
}

export interface TlsRenewal {
  /** Checks now. Resolves when what was found is in use, or refused. */
  check(): Promise<void>;
  close(): void;
}

const CHECK_EVERY_MS = paced(2 * SECOND_MS);
const CHECKS_BEFORE_WARNING = 2;

export function watchTlsPair(options: TlsRenewalOptions): TlsRenewal {
  const { paths, onRenewed, conditions, log, now, everyMs = CHECK_EVERY_MS } = options;
  let pair = options.pair;
  /** The error of the last check, and how often in a row; null: none. */
  let wrong: { readonly files: TlsFiles | null; readonly reason: string; readonly checks: number } | null =
    null;
  const set: Conditions['set'] = (name, detail) => conditions.set(name, detail, paths.certificate);
  const checkValidity = () => set('certificate expires', validityError(paths, pair, now()));

  async function check(): Promise<void> {
    const found = await readTlsFiles(paths).catch(reasonOf);
    if (typeof found === 'string') note(null, found);
    else if (isSame(found, pair)) wrong = null;
    else if (wrong !== null && wrong.files !== null && isSame(found, wrong.files)) note(found, wrong.reason);
    else take(found);
    if (wrong === null) set('certificate not usable', null);
    checkValidity();
  }

  function take(files: TlsFiles): void {
    try {
      pair = checkTlsPair(paths, files);
    } catch (error) {
      note(files, reasonOf(error));
      return;
    }
    wrong = null;
    onRenewed(pair);
    const valid_to = formatMs(pair.validToMs);
    log.info({ certificate: paths.certificate, valid_to }, 'certificate renewed');
  }

  function note(files: TlsFiles | null, reason: string): void {
    wrong = { files, reason, checks: wrong?.reason === reason ? wrong.checks + 1 : 1 };
    if (wrong.checks !== CHECKS_BEFORE_WARNING) return;
    set('certificate not usable', reason);
    log.warn({ reason }, 'the new certificate cannot be used: the previous one stays in use');
  }

  checkValidity();
  let checking = Promise.resolve();
  const checkInTurn = () => {
    checking = checking.then(check);
    return checking;
  };
  const timer = everyMs === null ? undefined : setInterval(checkInTurn, everyMs);
  return { check: checkInTurn, close: () => clearInterval(timer) };
}

function isSame(a: TlsFiles, b: TlsFiles): boolean {
  return a.certificate.equals(b.certificate) && a.key.equals(b.key);
}
