"""Secrets as people's logs hold them: a name, the text, and the words of it that must not survive.

No value here is anybody's: each is drawn from a generator seeded with the shape's own name, and the
shapes that scanners know are put together from halves, so that none takes this file for a leak.
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
    """``text`` may have several lines; none of ``canaries`` may be in what is stored of it."""

    text: str
    canaries: tuple[str, ...]


def word(seed: str, length: int = 20, alphabet: str = _ALNUM) -> str:
    """A word that is in no other text: drawn once per seed."""
    drawn = random.Random(seed)
    letters = "".join(drawn.choice(alphabet) for _ in range(length - 2))
    # A letter and a digit at least, as generated passwords have them.
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


# One %s, where the secret stands.
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
    return found


SECRETS: Mapping[str, Secret] = MappingProxyType(_secrets())

# What looks like the above and is needed to tell what went wrong.
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
)
