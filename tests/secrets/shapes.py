"""Secrets in the forms in which they occur in logs, and the parts that must not be stored.

The values are random. Most of them depend only on the name of the form. Values with the prefix of
an issuer are assembled from parts, so that secret scanners do not report this file.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_ALNUM = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Secret:
    """A text of one or more lines; none of its parts in ``canaries`` may be stored."""

    text: str
    canaries: tuple[str, ...]


def word(seed: str, length: int = 20, alphabet: str = _ALNUM) -> str:
    """A random word, which depends only on the arguments."""
    drawn = random.Random(seed)
    letters = "".join(drawn.choice(alphabet) for _ in range(length - 2))
    # At least one letter and one digit, as in generated passwords.
    return f"q{letters}7"


def _base64(seed: str, size: int) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def _pem(seed: str, label: str, headers: str = "") -> Secret:
    body = _base64(seed, 240)
    lines = tuple(body[i : i + 64] for i in range(0, len(body), 64))
    text = f"-----BEGIN {label}-----\n{headers}" + "\n".join(lines) + f"\n-----END {label}-----"
    return Secret(text, lines)


def _jwt(seed: str) -> str:
    parts = ('{"alg":"RS256","typ":"JWT"}', '{"sub":"svc","exp":1900000000}')
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, word(seed, 43)))


# Templates with one %s for the secret.
_KEYED = {
    # properties, YAML, JSON, XML
    "properties": "db.password=%s",
    "properties with blanks": "db.password = %s",
    "properties with a colon": "db.password: %s",
    "YAML in double quotes": 'password: "%s"',
    "YAML in single quotes": "  password: '%s'",
    "JSON": '{"user": "u", "password": "%s", "port": 1}',
    "JSON without blanks": '{"user":"u","password":"%s"}',
    "JSON inside JSON": '{"body": "{\\"password\\": \\"%s\\"}"}',
    "XML element": "<user>u</user><password>%s</password>",
    "XML attribute": '<datasource user="u" password="%s"/>',
    "XML property of Hadoop": "<name>fs.s3a.secret.key</name><value>%s</value>",
    "XML property of Hadoop in lines": "<name>fs.s3a.secret.key</name>\n  <value>%s</value>",
    "YAML block": "secret: |\n    %s",
    "JSON in lines": '{\n  "name": "API_TOKEN",\n  "value": "%s"\n}',
    "EnvVar of a pod template": "EnvVar(name=DB_PASSWORD, value=%s, valueFrom=null)",
    "Scala's map": "Map(user -> u, password -> %s)",
    "a password that begins like a mask": "password=true-%s",
    "numbered": "password1=%s",
    "AWS secret key in words": "AWS Secret Key: %s",
    "Map.toString": "{user=u, password=%s, port=1}",
    "Python's dict": "{'user': 'u', 'password': '%s'}",
    "camel case": "config dbPassword=%s used",
    "pass alone": "DB_PASS=%s",
    "pw alone": "user=u pw=%s",
    "name and value of a pod's environment": '{"name": "DB_PASSWORD", "value": "%s"}',
    "name and value of a pod's environment, YAML": "- name: DB_PASSWORD\n  value: %s",
    "class and key in brackets": "Settings[user=u,secret=%s]",
    "url-encoded": "form user%%3Du%%26password%%3D%s%%26x%%3D1",
    "upper case": "PASSWORD=%s",
    # Flink, Kafka, SQL
    "dynamic property": "-Ds3.secret-key=%s",
    "dynamic property, two words": "-D s3.secret-key=%s",
    "key store of the JVM": "-Djavax.net.ssl.keyStorePassword=%s",
    "trust store of Flink": "security.ssl.internal.truststore-password: %s",
    "Kafka's ssl.key.password": "ssl.key.password = %s",
    "JAAS, SCRAM": (
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" password="%s";'
    ),
    "JAAS, plain in single quotes": (
        "properties.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule "
        "required username='u' password='%s';"
    ),
    "JAAS, OAuth": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="c" clientSecret="%s" scope="s";'
    ),
    "JAAS escaped in JSON": '{"jaas": "PlainLoginModule required password=\\"%s\\";"}',
    "schema registry": "schema.registry.basic.auth.user.info=SRKEY:%s",
    "schema registry in DDL": "'avro-confluent.basic-auth.user-info' = 'user:%s'",
    "bearer of the schema registry": "'avro-confluent.bearer-auth.token' = '%s'",
    "DDL": "CREATE TABLE t (a INT) WITH ('connector' = 'jdbc', 'password' = '%s')",
    "SQL user": "CREATE USER flink IDENTIFIED BY '%s'",
    "SQL role": "ALTER ROLE flink WITH PASSWORD '%s'",
    "Datadog reporter": "metrics.reporter.dghttp.apikey: %s",
    "Pulsar": "pulsar.client.authParams: token:%s",
    "LDAP": "java.naming.security.credentials=%s",
    # URLs
    "JDBC with user and password": "jdbc:postgresql://u:%s@db.example:5432/orders",
    "JDBC parameter": "jdbc:mysql://db:3306/o?user=u&password=%s&useSSL=true",
    "JDBC of SQL Server": "jdbc:sqlserver://db:1433;user=sa;password=%s;encrypt=true",
    "JDBC of Oracle": "jdbc:oracle:thin:scott/%s@//db:1521/orcl",
    "JDBC of Oracle with a SID": "jdbc:oracle:thin:scott/%s@db:1521:orcl",
    "MongoDB": "mongodb+srv://u:%s@cluster0.example.net/db",
    "Redis without a user": "redis://:%s@cache:6379/0",
    "AMQP": "amqp://u:%s@mq:5672/v",
    "basic auth": "GET https://u:%s@es.example:9200/_bulk",
    "git with a token": "https://x-access-token:%s@github.com/acme/jobs.git",
    "token in the query": "https://api.example/v1?x=1&access_token=%s&y=2",
    "key in the query": "https://api.example/v1?api_key=%s",
    "presigned S3": "https://b.s3.amazonaws.com/o?X-Amz-Expires=9&X-Amz-Signature=%s",
    "presigned S3, session": "https://b.s3.amazonaws.com/o?X-Amz-Security-Token=%s&x=1",
    "signed GCS": "https://storage.googleapis.com/b/o?X-Goog-Signature=%s",
    "CloudFront": "https://d.cloudfront.net/o?Expires=1&Signature=%s&Key-Pair-Id=K",
    "SAS": "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=%s&se=2030-01-01",
    # clouds
    "AWS credentials file": "aws_secret_access_key = %s",
    "AWS in the environment": "export AWS_SECRET_ACCESS_KEY=%s",
    "AWS session": "AWS_SESSION_TOKEN=%s",
    "s3a secret": "fs.s3a.secret.key=%s",
    "s3a encryption": "fs.s3a.encryption.key=%s",
    "s3 access key": "s3.access-key: %s",
    "Azure account key": (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%s==;"
        "EndpointSuffix=core.windows.net"
    ),
    "Azure account key of Hadoop": "fs.azure.account.key.acct.dfs.core.windows.net=%s",
    "Azure client": "fs.azure.account.oauth2.client.secret: %s",
    "Azure SAS of Hadoop": "fs.azure.sas.c.acct.blob.core.windows.net=%s",
    "Event Hubs": (
        "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=%s="
    ),
    "shared access signature": "SharedAccessSignature sr=n.example&sig=%s&se=1&skn=Root",
    "Alibaba OSS": "fs.oss.accessKeySecret: %s",
    "Tencent COS": "fs.cosn.userinfo.secretKey=%s",
    "Tencent COS, id": "fs.cosn.userinfo.secretId=%s",
    "service account on one line": (
        '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\n%s'
        '\\n-----END PRIVATE KEY-----\\n", "client_email": "a@b.iam.gserviceaccount.com"}'
    ),
    "registry login of Docker": '{"auths": {"reg.example": {"auth": "%s="}}}',
    "OAuth form": "grant_type=refresh_token&client_secret=%s&x=1",
    "refresh token": '"refresh_token":"%s"',
    # headers
    "bearer": "Authorization: Bearer %s",
    "bearer in a map": "{Authorization=[Bearer %s], Accept=[*/*]}",
    "basic": "Authorization: Basic %s==",
    "API key header": "Authorization: ApiKey %s==",
    "proxy": "Proxy-Authorization: Basic %s=",
    "AWS header": (
        "Authorization: AWS4-HMAC-SHA256 Credential=A/2026/s3/aws4_request, "
        "SignedHeaders=host, Signature=%s"
    ),
    "X-Api-Key": "X-Api-Key: %s",
    "X-Auth-Token": "X-Auth-Token: %s",
    "Vault's header": "X-Vault-Token: %s",
    "cookie": "Cookie: JSESSIONID=%s; theme=dark",
    "set-cookie": "Set-Cookie: session=%s; Path=/; HttpOnly",
    # command lines
    "argument": "run.sh --password %s --parallelism 2",
    "argument with =": "run.sh --db-password=%s --parallelism 2",
    "argument in quotes": 'run.sh --token "%s" job.jar',
    "keytool": "keytool -genkey -storepass %s -alias a",
    "keytool, key": "keytool -genkey -keypass %s -alias a",
    "curl": "curl -s -u flink:%s https://db.example/",
    "curl, long": "curl --user flink:%s https://db.example/",
    "mysql": "mysql -h db -u root -p%s orders",
    "psql": "PGPASSWORD=%s psql -h db",
    "sshpass": "sshpass -p %s ssh host",
    "argument list": "[--user, u, --password, %s, --port, 1]",
    "argument array in JSON": '["--user", "u", "--password", "%s", "--port", "1"]',
}


# Templates by class, with one %s for the secret. Secrets that span lines, consist of more than one
# word, or have a prefix are in `_written_in_lines` and `_by_prefix`.
_BY_CLASS: Mapping[str, Mapping[str, str]] = {
    "chat webhook": {
        "Discord": "POST https://discord.com/api/webhooks/1234567890123/%s failed",
        "Teams": (
            "POST https://acme.webhook.office.com/webhookb2/0f1e2d3c-aaaa-bbbb-cccc-0123456789ab"
            "@0f1e2d3c-aaaa-bbbb-cccc-0123456789ab/IncomingWebhook/%s/0f1e2d3c refused"
        ),
        "Google Chat": "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=%s&threadKey=a",
        "Telegram": "https://api.telegram.org/bot123456789:AA%sxyzwvutsrqponm/sendMessage",
        "Feishu": "https://open.feishu.cn/open-apis/bot/v2/hook/%s timed out",
        "WeCom": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=%s",
        "Mattermost": "POST https://chat.example.org/hooks/%s returned 404",
        "Zapier": "https://hooks.zapier.com/hooks/catch/12345/%s/",
        "PagerDuty": "https://events.pagerduty.com/integration/%s/enqueue",
        "PagerDuty, routing key": '{"routing_key": "%s", "event_action": "trigger"}',
    },
    "query or user part of a URL": {
        "key": "GET https://api.example/v1/rows?key=%s&limit=1",
        "code of a function": "https://fn.azurewebsites.example/api/run?code=%s==&x=1",
        "auth": "https://db.example/orders.json?auth=%s",
        "user part alone": "git clone https://%s@git.example/acme/jobs.git",
        "user part and a port": "nats://%s@nats.example:4222 is down",
        "DSN": "https://%s@o1.ingest.sentry.example/2",
        "user and password of an object store": "s3://AKEXAMPLE:%s@bucket/path",
        "password parameter": "clickhouse://db:8123/o?user=u&pwd=%s",
    },
    "flag of a command": {
        "redis-cli -a": "redis-cli -h cache -a %s ping",
        "docker login -p": "docker login -u ci -p %s registry.example",
        "ldapsearch -w": "ldapsearch -x -D cn=flink -w %s -b dc=example",
        "sqlcmd -P": "sqlcmd -S db -U sa -P %s -Q x",
        "beeline -p": "beeline -u jdbc:hive2://h:10000 -n u -p %s",
        "mongosh -p": "mongosh --host db -u root -p '%s' admin",
        "curl -H": "curl -s -H 'X-Auth: %s' https://db.example/",
        "curl -H, GitLab": 'curl -H "PRIVATE-TOKEN: %s" https://git.example/api',
        "curl -u in quotes": "curl -u 'flink:%s' https://db.example/",
        "--pass": "bin/run --user u --pass %s --port 1",
        "openssl": "openssl rsa -in k.pem -passin pass:%s -out o.pem",
        "kubectl create secret": "kubectl create secret generic db --from-literal=login=%s",
        "aws configure": "aws configure set aws_secret_access_key %s --profile p",
        "sqlplus": "sqlplus scott/%s@orcl",
        "smbclient": "smbclient -U flink%%%s //host/share",
        "property of the JVM": "java -Dtoken=%s -jar a.jar",
        "password of the JVM": "java -Dpw=%s -jar a.jar",
        "token flag": "vault login -method=token -token %s",
    },
    "words between the name and the value": {
        "password is": "the password is %s, change it",
        "password was, in quotes": "the old password was '%s'",
        "token is": "Your API token is: %s",
        "set to": "s3.secret-key set to %s",
        "login of netrc": "machine db.example login flink password %s",
        "with password": "connecting as flink with password %s to db",
    },
    "blanks and look-alikes": {
        "tabs": "password:\t\t\t%s",
        "wide blanks": "db.password                    %s",
        "many blanks behind the equals sign": "password =               %s",
        "no-break space": "password:\u00a0%s",
        "no-break spaces": "secret\u00a0=\u00a0%s",
        "ideographic space": "password:\u3000%s",
        "zero width in the name": "pass\u200bword=%s",
        "zero width behind the name": "token\u200b=\u200b%s",
        "byte order mark": "api_\ufeffkey=%s",
        "full-width colon": "password\uff1a%s",
        "full-width equals sign": "token\uff1d%s",
        "full-width letters": "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44=%s",
    },
    "form of the name": {
        "plural": "passwords=%s",
        "plural of tokens": "tokens: '%s'",
        "plural list": "secrets=[%s]",
        "plural list in JSON": '{"apiKeys": ["%s"]}',
        "camel case behind": "dbPasswordValue=%s",
        "camel case, text": "tokenString=%s",
        "index": "password[0]=%s",
        "key in brackets": 'config["password"] = "%s"',
        "key in single brackets": "props['db.secret']=%s",
        "dots behind": "password.primary=%s",
        "dots behind, twice": "secret.prod.orders=%s",
        "default": "password(default)=%s",
        "old and new": "password_new=%s",
        "auth key": "hoodie.auth_key=%s",
        "JAAS abbreviation": "passwd_plain=%s",
        "credentials": "credentials: %s",
        "key of a database": "db_key=%s",
        "key of a client": "client-key: %s",
        "key of a cloud": "IBM_KEY=%s",
        "master key": "encryption.master_key=%s",
    },
    "other languages": {
        "German": "Passwort: %s",
        "German, Kennwort": "kennwort=%s",
        "Spanish": "contrase\u00f1a: %s",
        "French": "mot de passe : %s",
        "French, short": "mdp=%s",
        "Portuguese": "senha=%s",
        "Russian": "\u043f\u0430\u0440\u043e\u043b\u044c: %s",
        "Chinese": "\u5bc6\u7801\uff1a%s",
        "Chinese, traditional": "\u5bc6\u78bc=%s",
        "Chinese, key": "\u5bc6\u94a5: %s",
        "Japanese": "\u30d1\u30b9\u30ef\u30fc\u30c9: %s",
        "Korean": "\ube44\ubc00\ubc88\ud638=%s",
        "Polish": "has\u0142o: %s",
        "Dutch": "wachtwoord=%s",
    },
    "escapes": {
        "equals sign of Gson": "password\\u003d%s",
        "equals sign of Gson and an ampersand": "user\\u003du\\u0026password\\u003d%s\\u0026x",
        "HTML, decimal": "password&#61;%s",
        "HTML, hexadecimal": "token&#x3D;%s",
        "HTML, quotes": "&#34;password&#34;: &#34;%s&#34;",
        "unicode in the name": "p\\u0061ssword=%s",
        "hexadecimal": "password\\x3d%s",
        "URL-encoded twice": "https://h.example/?next=%%252Fx%%253Fpassword%%253D%s%%2526y",
        "JSON in JSON in JSON": '{"b": "{\\"c\\": \\"{\\\\\\"pwd\\\\\\": \\\\\\"%s\\\\\\"}\\"}"}',
    },
    "markup and pairs": {
        "CDATA": "<password><![CDATA[%s]]></password>",
        "CDATA of a property": "<name>db.secret</name><value><![CDATA[%s]]></value>",
        "CDATA with blanks": "<token> <![CDATA[ %s ]]> </token>",
        "attributes": '<property name="password" value="%s"/>',
        "entry": '<entry key="db.password">%s</entry>',
        "braces": "password={%s}",
        "braces and a name": "secret: {value: %s}",
        "Spring": "password={noop}%s",
        "brackets": "password=[%s]",
        "angle brackets": "password=<%s>",
        "pair": "(password,%s)",
        "pair with a blank": "List((user,u), (db.password, %s))",
        "array of two": '["password", "%s"]',
        "constructor": "Password(%s)",
        "call": 'setPassword("%s")',
        "call with a name": 'options.put("password", "%s")',
        "walrus": "password := %s",
        "two equals signs": "password == %s",
        "Ruby": '{"password"=>"%s"}',
        "key and value": '{"Key": "db_password", "Value": "%s"}',
        "bars": "password|%s|",
    },
}


def _written_in_lines() -> dict[str, dict[str, Secret]]:
    """Classes whose secrets span several lines, or consist of more than one word."""
    pem = _pem("cut", "RSA " + "PRIVATE KEY")
    cut = pem.text.split("\n", 2)[2]
    middle = "\n".join(pem.canaries[1:])
    rest = f"{pem.canaries[1]}\n{word('tail', 9)}\n-----END {'EC'} PRIVATE KEY-----"
    flat = "\\n".join(pem.text.split("\n")[2:])
    a, b, c, d = (word(f"line {number}", 30) for number in range(4))
    config = f"user: flink\ndb.password: {a}\nport: 5432\n"
    encoded = {
        "YAML": base64.b64encode(config.encode()).decode(),
        "JSON": base64.b64encode(json.dumps({"apiKey": b, "user": "u"}).encode()).decode(),
        "properties, URL-safe": base64.urlsafe_b64encode(f"x=1\nTOKEN={c}\n".encode()).decode(),
        "private key": base64.b64encode(pem.text.encode()).decode(),
    }
    key = _base64("jwk", 90).translate(str.maketrans("+/", "-_"))
    return {
        "private key without its beginning": {
            "two lines gone": Secret(cut, pem.canaries[2:]),
            "behind a word": Secret(f"key: {cut}", pem.canaries[2:]),
            "a short last line": Secret(rest, (pem.canaries[1], word("tail", 9))),
            "flattened": Secret(flat, pem.canaries[2:]),
            "neither beginning nor end": Secret(middle, pem.canaries[1:4]),
            "indented": Secret(cut.replace("\n", "\n    "), pem.canaries[2:]),
            "JWK": Secret(f'{{"kty":"RSA","n":"abc","e":"AQAB","d":"{key}"}}', (key[:40],)),
            "PuTTY": Secret(f"Private-Lines: 1\n{key.replace('-', '+')}\n", (key[40:60],)),
        },
        "base64 of a configuration": {
            name: Secret(f"effective settings {text} end", (text[10:40], text[-16:-4]))
            for name, text in encoded.items()
        },
        "table under a header": {
            "CSV": Secret(f"user,password,host\nu,{a},h1\nv,{b},h2", (a, b)),
            "CSV, secret first": Secret(f"token;user\n{c};u", (c,)),
            "CSV in quotes": Secret(f'"user","password"\n"u","{a}"', (a,)),
            "tabs": Secret(f"name\tsecret\tport\nx\t{d}\t1", (d,)),
            "bars": Secret(
                f"+---+---+\n| user | password |\n+---+---+\n| u | {a} |\n+---+---+", (a,)
            ),
        },
        "over two lines": {
            "continued": Secret(f"password={a}\\\n    {b}\nport=1", (a, b)),
            "quote left open": Secret(f'password="{a}\n{b}"\nnext', (a, b)),
            "sign on the second line": Secret(f"password\n  = {c}", (c,)),
            "wrapped at a column": Secret(
                f"sending the header Authorization: Bearer {a}{b}\n{c}{d}\ndone", (a, b, c, d)
            ),
            "name and value of an argument": Secret(f"  --password\n  {a}\n  --port", (a,)),
            "YAML, folded": Secret(f"token: >-\n  {a}\n  {b}\nnext: 1", (a, b)),
        },
    }


def _by_prefix() -> dict[str, str]:
    """Tokens that are recognized by their form, such as a prefix of the issuer, without a key."""
    digits = random.Random("digits").randbytes(32).hex()
    return {
        "Docker Hub": "dckr" + "_pat_" + word("dckr", 27),
        "PyPI": "pypi" + "-AgEIcHlwaS5vcmc" + word("pypi", 60),
        "RubyGems": "ruby" + "gems_" + digits[:48],
        "Hugging Face": "h" + "f_" + word("hf", 34),
        "Atlassian": "ATA" + "TT3xFfGF0" + word("atatt", 60),
        "Alibaba": "LT" + "AI5t" + word("ltai", 20),
        "Tencent": "AK" + "ID" + word("akid", 32),
        "DigitalOcean": "dop" + "_v1_" + digits,
        "Shopify": "shp" + "at_" + digits[:32],
        "Grafana": "gl" + "sa_" + word("glsa", 32) + "_0a1b2c3d",
        "Grafana Cloud": "gl" + "c_eyJ" + word("glc", 60),
        "New Relic": "NR" + "AK-" + word("nrak", 27, string.ascii_uppercase).upper(),
        "Linear": "lin" + "_api_" + word("lin", 40),
        "Doppler": "dp" + ".pt." + word("dp", 43),
        "Pulumi": "pul" + "-" + digits[:40],
        "Mailgun": "key" + "-" + digits[:32],
        "Mailchimp": digits[:32] + "-us" + "12",
        "Twilio": "S" + "K" + digits[:32],
        "Square": "sq0" + "csp-" + word("sq", 43),
        "Stripe hook": "whs" + "ec_" + word("whsec", 32),
        "Twilio account": "A" + "C" + digits[32:64],
        "GitLab runner": "GR13489" + "41" + word("gr", 20),
        "AWS, other prefix": "AB" + "IA" + word("abia", 16, string.ascii_uppercase).upper(),
        "GitHub with a bar": "gh" + "o_" + word("gho", 20) + "_" + word("gho2", 15),
        "Postman": "PM" + "AK-" + digits[:24] + "-" + digits[:34],
        "Sentry": "sntr" + "ys_" + word("sntrys", 60),
        "PlanetScale": "pscale" + "_tkn_" + word("pscale", 40),
        "Artifactory": "AK" + "Cp8" + word("akcp", 66),
        "Azure AD": word("aad1", 3)[:2] + "a8" + "Q~" + word("aad2", 34),
        "Azure storage": _base64("storage", 64),
        "age": "AGE-SECRET" + "-KEY-1" + word("age", 58, string.ascii_uppercase).upper(),
        "Slack app": "xa" + "pp-1-A0B1C2D3E4-1234567890-" + word("xapp", 40),
        "Google refresh": "1/" + "/0" + word("g10", 60),
        "1Password": "op" + "s_eyJ" + word("ops", 80),
        "Discord bot": base64.b64encode(b"123456789012345678").decode()
        + "."
        + "YaBcDe"
        + "."
        + word("bot2", 30),
        "bcrypt": "$2" + "b$12$" + word("bcrypt", 53),
        "crypt": "$" + "6$saltsalt$" + word("crypt", 60),
        "JWE": "ey" + "J" + ".".join(word(f"jwe {part}", 40) for part in range(5)),
        "Telegram bot": "123456789:" + "AA" + word("tg", 33),
        "Databricks OAuth": "do" + "se" + digits[:32],
    }


def _secrets() -> dict[str, Secret]:
    found: dict[str, Secret] = {}
    for name, template in _KEYED.items():
        canary = word(name)
        found[name] = Secret(template % canary, (canary,))
    shaped = {
        "AWS access key": "A" + "KIA" + word("akia", 16, string.ascii_uppercase).upper(),
        "AWS temporary key": "A" + "SIA" + word("asia", 16, string.ascii_uppercase).upper(),
        "GitHub": "gh" + "p_" + word("ghp", 36),
        "GitHub, fine-grained": "github" + "_pat_" + word("pat", 60),
        "GitLab": "gl" + "pat-" + word("glpat", 20),
        "Slack": "xox" + "b-123456789012-" + word("xoxb", 24),
        "Google API key": "AI" + "za" + word("aiza", 35),
        "Google access token": "ya" + "29.a0" + word("ya29", 60),
        "Google client secret": "GOC" + "SPX-" + word("gocspx", 28),
        "Databricks": "da" + "pi" + random.Random("dapi").randbytes(16).hex(),
        "Stripe": "sk_" + "live_" + word("stripe", 24),
        "SendGrid": "S" + "G." + word("sg1", 22) + "." + word("sg2", 43),
        "Vault": "hv" + "s." + word("hvs", 24),
        "npm": "np" + "m_" + word("npm", 36),
        "OpenAI": "s" + "k-proj-" + word("openai", 48),
        "JWT": _jwt("jwt"),
    }
    for name, value in shaped.items():
        found[name] = Secret(f"the server refused {value} as expired", (value[-12:],))
    hook = f"https://hooks.slack.com/services/T0/B0/{word('hook')}"
    found["Slack hook"] = Secret(f"POST {hook} failed", (word("hook"),))
    found["RSA key"] = _pem("rsa", "RSA " + "PRIVATE KEY")
    found["PKCS 8 key"] = _pem("pkcs8", "PRIVATE" + " KEY")
    found["EC key"] = _pem("ec", "EC " + "PRIVATE KEY")
    found["OpenSSH key"] = _pem("ssh", "OPENSSH " + "PRIVATE KEY")
    found["PGP key"] = _pem("pgp", "PGP " + "PRIVATE KEY BLOCK")
    encrypted = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,A1B2C3\n\n"
    found["encrypted key"] = _pem("enc", "RSA " + "PRIVATE KEY", encrypted)
    account = _pem("gcp", "PRIVATE" + " KEY")
    pretty = {"type": "service_account", "private_key": account.text + "\n", "client_id": "1"}
    found["service account in lines"] = Secret(json.dumps(pretty, indent=2), account.canaries)
    delegation = random.Random("hdfs").randbytes(40).hex(" ")
    found["Hadoop delegation token"] = Secret(
        f"Got token Kind: HDFS_DELEGATION_TOKEN, Service: ha-hdfs:ns, Ident: {delegation}",
        (delegation[30:60],),
    )
    keytab = "BQI" + "AAABS" + word("keytab", 60)
    found["keytab in base64"] = Secret(f"keytab: {keytab}", (keytab[8:],))
    for name, template in (
        ("blanks inside the quotes", 'password="%s %s"'),
        ("escaped quote inside", '{"password": "%s\\"%s"}'),
        ("delimiters inside", "password=%s@/&%%%s port=1"),
        ("URL whose password holds delimiters", "jdbc:mysql://u:%s@/:%s@db/orders"),
        ("both on lines of their own", "password=\\\n    %s\nsecret=\n  %s"),
    ):
        canaries = word(f"{name} 1"), word(f"{name} 2")
        found[name] = Secret(template % canaries, canaries)
    for shapes in _classes().values():
        found |= shapes
    return found


def _classes() -> dict[str, dict[str, Secret]]:
    classes: dict[str, dict[str, Secret]] = {}
    for name, templates in _BY_CLASS.items():
        classes[name] = {}
        for shape, template in templates.items():
            canary = word(f"{name}, {shape}")
            classes[name][f"{name}: {shape}"] = Secret(template % canary, (canary,))
    for name, shapes in _written_in_lines().items():
        classes[name] = {f"{name}: {shape}": secret for shape, secret in shapes.items()}
    classes["prefix"] = {
        f"prefix: {shape}": Secret(f"the server refused {value} as expired", (value[-12:],))
        for shape, value in _by_prefix().items()
    }
    return classes


# The secrets of each class.
CLASSES: Mapping[str, Mapping[str, Secret]] = MappingProxyType(_classes())
SECRETS: Mapping[str, Secret] = MappingProxyType(_secrets())

# Texts that resemble secrets, but must not be masked.
HARMLESS: tuple[str, ...] = (
    "pekko.tcp://flink@host:6123/user/rpc/taskmanager_0",
    "pekko.ssl.tcp://flink@10.0.0.1:6122/temp/taskmanager_0$a",
    "akka.tcp://flink@jobmanager.default.svc:6123/user/rpc/jobmanager_2#-1234",
    "org.apache.hadoop.security.token.SecretManager$InvalidToken: token expired",
    "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
    "org.apache.flink.runtime.security.token.DefaultDelegationTokenManager - Tokens update",
    "at com.acme.PasswordCallback.handle(PasswordCallback.java:12)",
    "at org.apache.hadoop.security.token.Token.decodeIdentifier(Token.java:183) ~[hadoop.jar:?]",
    "java.lang.IllegalStateException: Secret store is closed",
    "Caused by: java.io.IOException: Keystore was tampered with, or password was incorrect",
    "java.security.UnrecoverableKeyException: Password verification failed",
    "Keytab /etc/security/keytabs/flink.keytab is not readable",
    "security.kerberos.login.keytab: /etc/security/keytabs/flink.keytab",
    "security.kerberos.login.principal: flink/host@EXAMPLE.COM",
    "security.ssl.internal.keystore: /opt/flink/conf/internal.jks",
    "ssl.truststore.location = /opt/flink/conf/trust.jks",
    "state.checkpoints.dir, hdfs://ns/flink/checkpoints/3c445f31a6d0c5b1f0c8e4a7b2d9e6f1",
    "s3://bucket/checkpoints/3c445f31a6d0c5b1f0c8e4a7b2d9e6f1/chk-7/_metadata",
    "job 3c445f31a6d0c5b1f0c8e4a7b2d9e6f1 switched from RUNNING to FAILED",
    "Block checksum mismatch: stored = 395426827, computed = 21345761, type = 1  in /t/000032.sst",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "KeyGroupRange{startKeyGroup=0, endKeyGroup=63}",
    "key.deserializer = class org.apache.kafka.common.serialization.StringDeserializer",
    "table.exec.source.idle-timeout, 30 s",
    "high-availability.cluster-id: /token-service",
    "restart-strategy.failure-rate.max-failures-per-interval: 3",
    "taskmanager.memory.process.size=1728m",
    "sasl.mechanism = SCRAM-SHA-512",
    "sasl.jaas.config = [hidden]",
    "sasl.login.callback.handler.class = null",
    "ssl.keystore.password = null",
    "Loading configuration property: s3.secret-key, ******",
    "password=${DB_PASSWORD}",
    "--user flink --parallelism 2",
    "kubectl -n flink get pods -p 3",
    "Compaction pass 3: 12 files",
    "Fencing token not set: Ignoring message RemoteFencedMessage(b1f0c8e4, Foo)",
    "fencing token = b1f0c8e4a7b2d9e6f13c445f31a6d0c5",
    "Unexpected token: EOF at line 3",
    'SQL parse failed. Encountered "FROM" at line 1, column 8. Was expecting one of: <TOKEN>',
    "method signature: (Lorg/apache/flink/Foo;)V",
    "Authorization failed for user flink on topic orders",
    "Not authorized to access topics: [orders]",
    "Basic statistics of the table are unknown",
    "cookie store is empty",
    "The session token has expired",
    "Invalid secret",
    "the password is wrong",
    "Bearer of bad news",
    "http://host:8081/jobs/3c445f31a6d0c5b1f0c8e4a7b2d9e6f1/exceptions",
    "pekko.tcp://flink@host:6123/user/rpc/resourcemanager_*",
    "jdbc:postgresql://db.example:5432/orders",
    "jdbc:oracle:thin:@//db:1521/orcl",
    "tm_10.0.0.1:6122-a1b2c3 @ 10.0.0.1 (dataPort=41001)",
    "Auth method is SASL_SSL",
    '{"auth": "none", "port": 9092}',
    "user@example.org",
    "consumer-group-id=orders-7, client.id=orders-7-0",
    "transactional.id = sink-3c445f31-0-1",
    "a lease expired and the pass-through operator was closed",
    # Similar to the classes above.
    "Access denied for user 'flink'@'tm-1' (using password: YES)",
    "the password is wrong, attempt 2",
    "token is valid until 2026-11-21T05:52:20Z",
    "password: <your password>",
    "password: not set",
    "rate limiter: tokens=128, burst=256",
    "Missing credentials: com.amazonaws.SdkClientException",
    "Unable to load AWS credentials from any provider in the chain",
    "password.file: /etc/secrets/db",
    "secret.provider.class=com.acme.VaultProvider",
    "com.acme.secret.store.Client: closed",
    "at com.acme.Config.password(Config.java:1234)",
    "abfss://checkpoints2026container@account1.dfs.core.windows.net/flink",
    "wasbs://checkpoints2026container@account1.blob.core.windows.net/flink",
    "hdfs://flinkproduction2026@namenode:8020/flink",
    "https://kafka.example/consumers?key=orders",
    "https://docs.example/page?code=404&x=1",
    "psql -h db -p 5432 -U flink orders",
    "kubectl -n flink logs -p orders-tm-1-1",
    "mysql --port 3306 -h db",
    "name,host,port\na,h1,1\nb,h2,2",
    "| id | name |\n| 1 | a |",
    "uuid 0f1e2d3c-aaaa-bbbb-cccc-0123456789ab in /hooks/pre-commit",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n" * 4,
    "\u2713 checkpoint 7 completed\u3002\u72b6\u6001\uff1a\u6210\u529f",
    "path C:\\x64\\u0041 and 100%25 of it",
    "org.apache.flink.table.api.ValidationException: field pass | line 12",
    "SELECT token, id FROM t1 WHERE signature IS NOT NULL",
    "tokens   consumed   in 5 s",
    "eyJhbGciOiJIUzI1NiJ9 is no token",
)
