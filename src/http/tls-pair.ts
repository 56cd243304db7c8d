/** The certificate and key for TLS, checked before they are used: OpenSSL's messages do not say which file to fix. */
import { createPrivateKey, constants as cryptoConstants, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Conditions } from '../health/alert-conditions.ts';
import type { Logger } from '../logger.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { paced } from '../pace.ts';
import { misconfigured, reasonOf } from '../refused.ts';
import { DAY_MS, formatMs, type Now, SECOND_MS } from '../time.ts';

type TlsSetting = 'tls_certificate' | 'tls_key';

/** Paths of PEM files: the server's certificate first, then its chain; the key, without a passphrase. */
export type TlsPaths = Readonly<Record<TlsSetting, string>> & {
  /** Of the settings that name them. Default: server. */
  readonly section?: 'admin';
};

export type TlsPair = Awaited<ReturnType<typeof loadTlsPair>>;

/** Certificates of 90 days are usually renewed 30 days before they expire. */
const EXPIRES_SOON_MS = 14 * DAY_MS;

/** @throws Refused `configuration`, with the file that cannot be read or used, and why */
export async function loadTlsPair(paths: TlsPaths) {
  const refused = (setting: TlsSetting, what: string, options?: ErrorOptions) =>
    misconfigured(`[${paths.section ?? 'server'}] ${setting}, ${paths[setting]}: ${what}`, options);
  const read = (setting: TlsSetting) =>
    readFile(paths[setting]).catch((cause: unknown) => {
      throw refused(setting, reasonOf(cause), { cause });
    });
  const attempt = <Value>(use: () => Value, setting: TlsSetting, otherwise: string): Value => {
    try {
      return use();
    } catch (cause) {
      const reason = cause instanceof Error && 'reason' in cause ? ` (${cause.reason})` : '';
      throw refused(setting, `${otherwise}${reason}`, { cause });
    }
  };
  const [cert, key] = await Promise.all([read('tls_certificate'), read('tls_key')]);
  const parseCertificate = () => new X509Certificate(cert);
  const x509 = attempt(parseCertificate, 'tls_certificate', 'no PEM certificate found in the file');
  const noKey = 'no PEM private key without a passphrase found in the file';
  if (!x509.checkPrivateKey(attempt(() => createPrivateKey(key), 'tls_key', noKey)))
    throw refused(
      'tls_key',
      `the key does not match the certificate in ${paths.tls_certificate}. The first certificate in that file must be the server's own`,
    );
  const context = { cert, key, ...CONTEXT_OPTIONS };
  const notAccepted = 'OpenSSL does not accept this certificate and key for TLS';
  attempt(() => createSecureContext(context), 'tls_certificate', notAccepted);
  return {
    paths,
    /** What `tls.createServer` and `setSecureContext` take. */
    context,
    validFromMs: x509.validFromDate.getTime(),
    validToMs: x509.validToDate.getTime(),
    subjectAltName: x509.subjectAltName,
  };
}

/** These are Mozilla's "intermediate" ones (RFC 9325, 4.2): Node's default also has static RSA and CBC. */
const CIPHERS = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

const CONTEXT_OPTIONS = {
  minVersion: 'TLSv1.2',
  ciphers: CIPHERS,
  // No HTTP client needs renegotiation, and it costs the server far more than the client.
  secureOptions: cryptoConstants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** Expired, not valid yet, or in its last 14 days or last third. @returns the alert's text, or null */
export function validityError(
  { validFromMs, validToMs, paths }: Pick<TlsPair, 'validFromMs' | 'validToMs' | 'paths'>,
  nowMs: number,
): string | null {
  const certificate = paths.tls_certificate;
  if (nowMs >= validToMs)
    return `${certificate}: the certificate expired at ${formatMs(validToMs)}; clients reject it`;
  if (nowMs < validFromMs)
    return `${certificate}: the certificate is not valid before ${formatMs(validFromMs)}; clients reject it until then`;
  const soonMs = Math.min(EXPIRES_SOON_MS, (validToMs - validFromMs) / 3);
  return validToMs - nowMs > soonMs
    ? null
    : `${certificate}: the certificate expires at ${formatMs(validToMs)}`;
}

export interface RenewalOptions {
  readonly pair: TlsPair;
  readonly onRenewed: (pair: TlsPair) => void;
  readonly conditions: Pick<Conditions, 'set'>;
  readonly log: Logger;
  readonly now: Now;
  readonly everyMs?: number | null;
}

const CHECK_EVERY_MS = paced(2 * SECOND_MS);
const CHECKS_BEFORE_WARNING = 2;

/**
 * Uses a renewed certificate without a restart, and opens alerts for one that is about to expire or cannot be used. The
 * files are compared by content: this detects a rename, a changed link and writing in place, on any file system. While a
 * renewal is being written they do not match, so an error is reported once it persists for two checks.
 */
export function watchTlsPair(options: RenewalOptions) {
  const { onRenewed, conditions, log, now, everyMs = CHECK_EVERY_MS } = options;
  let { pair } = options;
  const { paths } = pair;
  const certificate = paths.tls_certificate;
  let failures = 0;
  const set: Conditions['set'] = (name, detail) => conditions.set(name, detail, certificate);
  const checkValidity = () => set('certificate expires', validityError(pair, now()));

  async function checkNow(): Promise<void> {
    try {
      const found = await loadTlsPair(paths);
      const { cert, key } = found.context;
      if (!cert.equals(pair.context.cert) || !key.equals(pair.context.key)) {
        pair = found;
        onRenewed(pair);
        log.info({ certificate, valid_to: formatMs(pair.validToMs) }, 'certificate renewed');
      }
      failures = 0;
      set('certificate not usable', null);
    } catch (error) {
      failures += 1;
      if (failures === CHECKS_BEFORE_WARNING) {
        const reason = reasonOf(error);
        set('certificate not usable', reason);
        log.warn({ reason }, 'the new certificate cannot be used: the previous one stays in use');
      }
    }
    checkValidity();
  }

  /**
   * Resolves when what was found is in use, or refused. On a network share that hangs, each check would block two of
   * Node's threads for files.
   */
  const check = oneAtATime(checkNow);

  checkValidity();
  const timer = everyMs === null ? undefined : setInterval(check, everyMs);
  return { pair: () => pair, check, close: () => clearInterval(timer) };
}
