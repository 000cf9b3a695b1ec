"""Secrets in 126 shapes, and ordinary text that resembles them.

The secrets are put together here, so that no scanner of repositories takes one for a real one. Each is a pair
of the text as it may occur and the part that must not be shown.
"""

from __future__ import annotations

import base64
import json
import random
import string
import textwrap

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "_-"


def shapes(seed: int = 7) -> dict[str, tuple[str, str]]:
    """Return the shapes by name: the text, and the secret in it."""
    chance = random.Random(seed)

    def body(length: int, letters: str = ALNUM) -> str:
        # A digit and letters in every one: a generated token without any is too rare to matter.
        core = "".join(chance.choice(letters) for _ in range(length - 3))
        last = chance.choice(letters.replace("-", "").replace("_", ""))
        return f"{core}7{'a' if 'a' in letters else 'Q'}{last}"

    def token(prefix: str, length: int, letters: str = ALNUM) -> tuple[str, str]:
        secret = body(length, letters)
        return f"{prefix}{secret}", secret

    def inside(text: str, length: int = 24, letters: str = ALNUM) -> tuple[str, str]:
        secret = body(length, letters)
        return text.replace("@@", secret), secret

    def b64(length: int) -> str:
        return base64.b64encode(chance.randbytes(length)).decode()

    def pem(kind: str, end: bool = True, joined: str = "\n") -> tuple[str, str]:
        secret = b64(48)
        lines = [f"-----BEGIN {kind}-----", b64(48), secret, b64(20)]
        return joined.join([*lines, *([f"-----END {kind}-----"] if end else [])]), secret

    def hidden(text: str, form: str = "base64", wrapped: bool = False) -> tuple[str, str]:
        whole = text.encode().hex() if form == "hex" else base64.b64encode(text.encode()).decode()
        lines = textwrap.wrap(whole, 76) if wrapped else [whole]
        return "\n".join(lines), lines[-2] if wrapped else whole[4:-4]

    letters = "".join(chance.choices(string.ascii_letters, k=34))
    login = body(18)
    encoded = base64.b64encode(f"deploy:{login}".encode()).decode()
    account = {"type": "service_account", "project_id": "p", "private_key": pem("PRIVATE KEY")[0]}
    slash = "/"
    return {
        "anthropic": token("sk-ant-api03-", 90, URL),
        "openai project": token("sk-proj-", 80, URL),
        "openai old": token("sk-", 48),
        "openai service": token("sk-svcacct-", 60, URL),
        "openrouter": token("sk-or-v1-", 64, HEX),
        "github classic": token("ghp_", 36),
        "github oauth": token("gho_", 36),
        "github server": token("ghs_", 36),
        "github refresh": token("ghr_", 36),
        "github fine-grained": token("github_pat_", 82, ALNUM + "_"),
        "gitlab": token("glpat-", 20, URL),
        "gitlab runner": token("glrt-", 20, URL),
        "gitlab deploy": token("gldt-", 20, URL),
        "npm": token("npm_", 36),
        "pypi": token("pypi-AgEIcHlwaS5vcmc", 90, URL),
        "hugging face": (f"hf_{letters}", letters),  # without a digit, as theirs are
        "stripe live": token("sk_live_", 24),
        "stripe test": token("sk_test_", 24),
        "stripe restricted": token("rk_live_", 24),
        "stripe webhook": token("whsec_", 32),
        "slack bot": inside("xoxb-123456789012-123456789012-@@"),
        "slack app": inside("xapp-1-A012345-9876543-@@", 40, HEX),
        "slack webhook": inside(f"https:{slash}/hooks.slack.com/services/T0AAAAAA1/B0BBBBBB2/@@"),
        "discord bot": inside("M" + body(23) + "." + body(6) + ".@@", 27, URL),
        "discord webhook": inside(f"https:{slash}/discord.com/api/webhooks/123456789012345678/@@", 68, URL),
        "telegram": inside("123456789:AA@@", 33, URL),
        "telegram url": inside(f"https:{slash}/api.telegram.org/bot987654321:AA@@/sendMessage", 33, URL),
        "twilio": token("SK", 32, HEX),
        "sendgrid": inside("SG." + body(22, URL) + ".@@", 43, URL),
        "mailgun": token("key-", 32, HEX),
        "mailchimp": inside("@@-us12", 32, HEX),
        "azure storage": inside("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=@@==;Suffix=y", 86),
        "azure shared access": inside(
            "Endpoint=sb://x.invalid/;SharedAccessKeyName=k;SharedAccessKey=@@=", 43
        ),
        "azure sas": inside(f"https:{slash}/x.blob.invalid/c?sv=2022-11-02&sp=r&sig=@@%3D", 43),
        "google api": token("AIza", 35, URL),
        "google oauth": token("ya29.", 60, URL),
        "google client": token("GOCSPX-", 28, URL),
        "gcp service account": (json.dumps(account), account["private_key"].split("\n")[2]),
        "aws id": token("AKIA", 16, UPPER),
        "aws session id": token("ASIA", 16, UPPER),
        "aws secret": inside("aws_secret_access_key = @@", 40, ALNUM + "/+"),
        "aws signed url": inside(
            f"https:{slash}/b.s3.invalid/k?X-Amz-Expires=60&X-Amz-Signature=@@", 64, HEX
        ),
        "google signed url": inside(f"https:{slash}/storage.invalid/k?X-Goog-Signature=@@", 128, HEX),
        "cloudfront": inside(f"https:{slash}/d.invalid/k?Expires=1&Signature=@@&Key-Pair-Id=K", 60, URL),
        "digitalocean": token("dop_v1_", 64, HEX),
        "shopify": token("shpat_", 32, HEX),
        "square": token("sq0csp-", 43, URL),
        "grafana": token("glsa_", 41, ALNUM + "_"),
        "vault": token("hvs.", 90, URL),
        "doppler": token("dp.pt.", 43),
        "docker hub": token("dckr_pat_", 27, URL),
        "atlassian": token("ATATT3", 180, URL + "="),
        "rubygems": token("rubygems_", 48, HEX),
        "linear": token("lin_api_", 40),
        "groq": token("gsk_", 52),
        "age": token("AGE-SECRET-KEY-1", 58, UPPER),
        "private key": pem("PRIVATE KEY"),
        "rsa key": pem("RSA PRIVATE KEY"),
        "openssh key": pem("OPENSSH PRIVATE KEY"),
        "pgp key": pem("PGP PRIVATE KEY BLOCK"),
        "key cut off": pem("EC PRIVATE KEY", end=False),
        "key in json": pem("PRIVATE KEY", joined="\\n"),
        "putty key": inside("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n@@\nPrivate-MAC: 0a1b", 64),
        "jwt": inside("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.@@", 43, URL),
        "bearer": inside("Authorization: Bearer @@", 40),
        "basic": (f"Authorization: Basic {encoded}", encoded),
        "url password": inside(f"https:{slash}/deploy:@@@host.invalid/x", 16),
        "postgres dsn": inside(f"postgresql:{slash}/app:@@@db.invalid:5432/app?sslmode=require", 16),
        "redis dsn": inside(f"redis:{slash}/:@@@cache.invalid:6379/0", 16),
        "mongodb dsn": inside(f"mongodb+srv:{slash}/app:@@@c0.invalid/x", 16),
        "ado connection": inside("Server=db;Database=x;User Id=app;Password=@@;Encrypt=True", 16),
        "npmrc": inside("//registry.invalid/:_authToken=@@", 36, HEX),
        "netrc": inside("machine api.invalid login deploy password @@", 16),
        "docker auth": (f'{{"auths": {{"https://x.invalid": {{"auth": "{encoded}"}}}}}}', encoded),
        "cookie": inside("Cookie: session=@@; theme=dark", 40),
        "set-cookie": inside("set-cookie: sid=@@; HttpOnly; Path=/", 40),
        "env token": inside("export DEPLOY_TOKEN=@@", 20),
        "env password": inside("DB_PASSWORD='@@'", 12),
        "yaml": inside("database:\n  password: @@\n  port: 5432", 14),
        "json": inside('{"client_secret": "@@", "n": 1}', 20),
        "json in json": inside('{"body": "{\\"apiKey\\": \\"@@\\"}"}', 20),
        "toml": inside('api_key = "@@"', 20),
        "ini": inside("[db]\npassword = @@", 14),
        "kubeconfig": inside("    client-key-data: @@", 60),
        "cli option": inside("tool --password @@ push", 14),
        "curl user": inside("curl -u deploy:@@ host.invalid", 14),
        "query": inside("/login?user=x&access_token=@@&x=1", 24),
        "cargo": token("cio", 32),
        "databricks": token("dapi", 32, HEX),
        "fly": inside("FlyV1 fm2_lJPECAAAAAAA@@", 60, ALNUM + "+/"),
        "fly old": token("fo1_", 43, URL),
        "vercel": token("vcp_", 56),
        "planetscale": token("pscale_tkn_", 43, URL),
        "planetscale password": token("pscale_pw_", 43, URL),
        "sentry organization": token("sntrys_eyJpYXQiOjE3", 100, ALNUM + "+/"),
        "sentry user": token("sntryu_", 64, HEX),
        "pulumi": token("pul-", 40, HEX),
        "terraform": inside(body(14) + ".atlasv1.@@", 67, URL),
        "langsmith": inside("lsv2_pt_@@_" + body(10, HEX), 32, HEX),
        "netlify": token("nfp_", 36),
        "heroku": token("HRKU-", 36, URL),
        "airtable": inside("pat" + body(14) + ".@@", 64, HEX),
        "sonar": token("sqp_", 40, HEX),
        "otpauth": inside(
            f"otpauth:{slash}/totp/x:y@z.invalid?secret=@@&issuer=x", 32, UPPER[:26] + "234567"
        ),
        "mysql password": inside("mysql -h db.invalid -u app -p@@ shop", 14),
        "mysqldump password": inside("mysqldump --single-transaction -uapp -p@@ shop", 14),
        "sshpass": inside("sshpass -p '@@' ssh x@host.invalid", 14),
        "docker login": inside("docker login -u ci -p @@ registry.invalid", 20),
        "redis password": inside("redis-cli -h cache.invalid -a @@ ping", 20),
        "pgpass": inside("db.invalid:5432:shop:app:@@", 16),
        "pgpass any": inside("*:*:*:app:@@", 16),
        "curl attached": inside("curl -udeploy:@@ https://host.invalid", 14),
        "curl long": inside("curl -s --user=deploy:@@ https://host.invalid", 14),
        "curl token only": inside("curl -su :@@ https://host.invalid", 20),
        "curl proxy": inside("curl --proxy-user deploy:@@ https://host.invalid", 14),
        "base64 of a token": hidden("ghp_" + body(36)),
        "base64 within": hidden('{"a": "b", "token": "ghp_' + body(36) + '"}'),
        "base64 of a key": hidden(pem("PRIVATE KEY")[0]),
        "base64 in lines": hidden(pem("OPENSSH PRIVATE KEY")[0], wrapped=True),
        "hex of a token": hidden("github_pat_" + body(82, ALNUM + "_"), form="hex"),
        "hex of a key": hidden(pem("EC PRIVATE KEY")[0], form="hex"),
        "aws id of older kinds": token("A3TX", 16, UPPER),
        "aws secret in quotes": inside("aws_prod_token_of_ci: '@@'", 40, ALNUM + "/+"),
        "gitlab runner of older kinds": token("GR1348941", 20, URL),
        "mailchimp with all letters": inside("@@-us3", 32, LOWER),
        "telegram of other kinds": inside("12345678:A@@", 34, URL),
    }


ORDINARY = (
    "1700000000:3de66f863de66f863de66f863de66f863de66f86 feat: Add the report",
    "max_tokens=500",
    "the key: it is simple",
    "primary_key=True",
    'curl -H "X-Key: $API_KEY"',
    "API_KEY=$OTHER",
    "API_KEY=${OTHER:-}",
    "sk-1",
    "http://localhost:8080/a@b",
    "monkey=3",
    "token = next_token(stream)",
    "token = lexer.next_token",
    "self.token = token",
    "def login(user: str, password: str) -> Token:",
    "password: string;",
    "password: string | null",
    "password?: string",
    'SECRET_KEY = os.environ["SECRET_KEY"]',
    'secret: process.env.JWT_SECRET ?? ""',
    "connect(user=user, password=password)",
    "return self.token",
    "if token == expected:",
    "key = (name, version)",
    "sort_key=lambda row: row.name",
    'foreign_key="user.id"',
    'cache_key: "users:all"',
    "const token = await getToken();",
    "let secret = generate_secret(32);",
    "Basic authentication is described in RFC 7617.",
    "a basic understanding of bearer authentication",
    "The password must have at least 12 characters.",
    "Forgot your password? Reset the password: click the link.",
    "--token-file PATH",
    "tokens: 1234",
    "input_tokens=1042, output_tokens=20",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "550e8400-e29b-41d4-a716-446655440000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H'
    '0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "aVeryLongCamelCaseIdentifierThatNamesAFactoryOfFactories",
    "test_a_task_with_a_long_name_and_the_number_12345_is_committed",
    "#ff00aa #0f0 rgba(255, 0, 170, 0.5)",
    "ISBN 978-3-16-148410-0",
    "!function(e,t){var n=e[0],r=t.a.b(c=>d[c]);return n?r:null}(window,{a:{b:x=>x}});",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host",
    "from-12:30:45.123456 to 2026-01-02T03:04:05+00:00",
    "src/components/auth/TokenRefreshProvider.tsx:142:17",
    "@auth.login_required",
    "auth: required",
    "npm_config_registry npm_package_version hf_hub_download",
    "sk-fading-circle sk-cube-grid-item",
    "author: Jane Doe",
    "keyboard: qwerty",
    "git@example.invalid:team/project.git",
    "mailto:jane@example.invalid",
    "r-20260102-0a1b2c3d4e5f",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----",
    "a PEM file begins with -----BEGIN PRIVATE KEY----- or so",
    "{{ secrets.DEPLOY_TOKEN }}",
    "password: ${{ secrets.DB_PASSWORD }}",
    "token: <your token>",
    "password: ********",
    "docker run --rm -u 1000:1000 -v $PWD:/x alpine",
    "ssh -p 2222 host.invalid && mkdir -p build/out && redis-cli -p 6379 ping",
    "mysql -h localhost -P 3306 -u root -p shop",
    "src/app.ts:1204:13:error:TS2304",
    "127.0.0.1:8080:80",
    "socket patch_0123456789abcdef dapibus special_0 ciocolata recipe_12345678",
    "0a:1b:2c:3d:4e:5f:60:71:82:93:a4:b5:c6:d7:e8:f9:0a:1b:2c:3d",
    "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4gTm90aGluZyBoZXJlLg==",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "print(token.text, token.kind)",
    "tokenizer = AutoTokenizer()",
    "Key: value",
    "| token | text | the id of the session |",
)
"""Text without secrets."""
