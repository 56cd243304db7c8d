/** Certificates for tests, created by openssl when needed, so that the sources contain no private key. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { testFolder } from './test-folder.ts';

/** The reason to skip tests that need certificates; false if openssl is installed. */
export const WITHOUT_OPENSSL = spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed';

export type CertificateFiles = Readonly<{ certificate: string; key: string }>;

const filesOf = (folder: string, name: string): CertificateFiles => ({
  certificate: join(folder, `${name}.pem`),
  key: join(folder, `${name}.key`),
});

/** Creates NAME.pem and NAME.key, valid for 90 days unless `more` says otherwise. */
function create(folder: string, name: string, subject: string, ...more: string[]): CertificateFiles {
  const files = filesOf(folder, name);
  const kind = ['req', '-x509', '-nodes', '-subj', `/CN=${subject}`, '-days', '90', ...more];
  const args = [...kind, '-keyout', files.key, '-out', files.certificate];
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
  return files;
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];

/** Creates NAME.pem and NAME.key: self-signed, for localhost, 127.0.0.1 and ::1. */
export function makeCertificate(folder: string, name: string, key: 'ec' | 'rsa' = 'ec', days = 90) {
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1'];
  const newKey = key === 'rsa' ? ['-newkey', 'rsa:2048'] : EC;
  return create(folder, name, name, ...newKey, ...names, '-days', `${days}`);
}

/** Creates an authority, and NAME.pem and NAME.key that it signs, for localhost. */
export function makeAuthority(folder: string, name: string) {
  const { certificate: authority, key } = makeCertificate(folder, `${name}-authority`);
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-addext', 'basicConstraints=critical,CA:FALSE'];
  const files = create(folder, name, 'localhost', ...EC, ...names, '-CA', authority, '-CAkey', key);
  return { ...files, authority };
}

/** A folder of certificates, shared by the tests of a file. */
export function useCertificates() {
  const folder = testFolder();
  if (!WITHOUT_OPENSSL) for (const name of ['first', 'second']) makeCertificate(folder, name);
  return {
    folder,
    /** Two certificates. */
    first: filesOf(folder, 'first'),
    second: filesOf(folder, 'second'),
    /** A copy of a pair, to overwrite. */
    copyOf({ certificate, key }: CertificateFiles, name: string): CertificateFiles {
      const copy = filesOf(folder, name);
      copyFileSync(certificate, copy.certificate);
      copyFileSync(key, copy.key);
      return copy;
    },
  };
}

/** Overwrites both files, as a renewal in place does. */
export function overwrite(target: CertificateFiles, { certificate, key }: CertificateFiles): void {
  writeFileSync(target.certificate, readFileSync(certificate));
  writeFileSync(target.key, readFileSync(key));
}

/** A connection to a server with one of these certificates; rejects otherwise. */
export function connectTls(port: number, ...trusted: CertificateFiles[]): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const ca = trusted.map(({ certificate }) => readFileSync(certificate));
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** The subject of the certificate that a server presents to a new connection. */
export async function presentedName(port: number, ...trusted: CertificateFiles[]): Promise<string> {
  const socket = await connectTls(port, ...trusted);
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

/** Sends a request on an open connection. @returns the response, or the part of it that arrives first */
export function sendRequest(socket: Socket, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk) => resolve(chunk.toString()));
    socket.once('close', () => reject(new Error('the connection was closed')));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  });
}
