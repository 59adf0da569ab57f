/** Files that came in and went out since the start of the server, for who wants to know. */
export class FileTraffic {
  uploads = 0;
  uploadedBytes = 0;
  /** Answers with contents, thumbnails included. */
  reads = 0;
  /** Of one that breaks off all of it counts. */
  readBytes = 0;

  /** A file of so many bytes was stored. */
  uploaded(bytes: number): void {
    this.uploads++;
    this.uploadedBytes += bytes;
  }

  /** An answer of so many bytes leaves. */
  read(bytes: number): void {
    this.reads++;
    this.readBytes += bytes;
  }
}
